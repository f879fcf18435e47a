-- Bytes over each link as if every collective had run as a ring, which is what a ring moves per edge: AllReduce twice
-- (n-1)/n of the buffer, AllGather, ReduceScatter once, Broadcast and Reduce the buffer; shared out over the channels
-- by the printed ring orders. Sends go where they say. Trees, NVLS and SHARP move less: an upper bound for those.
CREATE VIEW nccl_traffic AS
WITH edges AS (
    SELECT
        source_path, comm_index, rank_from, rank_to, num_graph_channels,
        sum(num_graph_channels) OVER (PARTITION BY source_path, comm_index, rank_from) AS channels
    FROM nccl_graphs
    WHERE graph = 'ring'
),
moved AS (
    SELECT source_path, comm_index, any_value(nranks) AS nranks, sum(
        total_bytes * CASE
            WHEN op = 'AllReduce' THEN 2 * (nranks - 1) / nranks
            WHEN op IN ('AllGather', 'ReduceScatter') THEN (nranks - 1) / nranks
            WHEN op IN ('Broadcast', 'Reduce') THEN 1
        END
    ) AS bytes_per_edge
    FROM nccl_collectives
    WHERE comm_index IS NOT NULL AND nranks > 1
    GROUP BY source_path, comm_index
),
sent AS (
    SELECT source_path, comm_index, rank AS rank_from, root AS rank_to, 'send' AS traffic_basis,
        sum(total_bytes)::DOUBLE AS link_bytes
    FROM nccl_collectives
    WHERE op = 'Send' AND comm_index IS NOT NULL AND rank IS NOT NULL AND root >= 0
    GROUP BY ALL
),
ringed AS (
    SELECT e.source_path, e.comm_index, e.rank_from, e.rank_to, 'ring' AS traffic_basis,
        m.bytes_per_edge * e.num_graph_channels / e.channels AS link_bytes
    FROM edges AS e
    JOIN moved AS m USING (source_path, comm_index)
    WHERE m.bytes_per_edge > 0
)
SELECT
    t.source_path, t.comm_index, t.rank_from, t.rank_to, a.host AS host_from, b.host AS host_to, t.traffic_basis,
    t.link_bytes
FROM (SELECT * FROM ringed UNION ALL BY NAME SELECT * FROM sent) AS t
LEFT JOIN nccl_ranks AS a
    ON a.source_path = t.source_path AND a.comm_index = t.comm_index AND a.rank = t.rank_from
LEFT JOIN nccl_ranks AS b
    ON b.source_path = t.source_path AND b.comm_index = t.comm_index AND b.rank = t.rank_to
WHERE t.link_bytes > 0
