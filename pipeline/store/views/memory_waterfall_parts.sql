-- memory_waterfall in long form, in the order of a picture: the estimated parts, then each level with the gap before it.
-- A gap begins where the last known level ends, so that level + gap = next level wherever both are known; the measured
-- parts divide the allocated level in the same way and stand in no gap. Unknown is NULL and keeps its row.
CREATE VIEW memory_waterfall_parts AS
WITH parts AS (
    SELECT run_id, unnest([
        {'part_no': 1, 'part_kind': 'estimated', 'part': 'weights', 'bytes': est_mem_weights_bytes, 'begin': 0.0},
        {'part_no': 2, 'part_kind': 'estimated', 'part': 'gradients', 'bytes': est_mem_gradients_bytes, 'begin': 0.0},
        {'part_no': 3, 'part_kind': 'estimated', 'part': 'optimizer', 'bytes': est_mem_optimizer_bytes, 'begin': 0.0},
        {'part_no': 4, 'part_kind': 'estimated', 'part': 'activations', 'bytes': est_mem_activations_bytes,
         'begin': 0.0},
        {'part_no': 5, 'part_kind': 'estimated', 'part': 'logits', 'bytes': est_mem_logits_bytes, 'begin': 0.0},
        {'part_no': 6, 'part_kind': 'estimated', 'part': 'buffers', 'bytes': est_mem_buffers_bytes, 'begin': 0.0},
        {'part_no': 7, 'part_kind': 'level', 'part': 'estimate', 'bytes': est_mem_bytes, 'begin': 0.0},
        -- a run that died before its peak did not allocate all that it would have
        {'part_no': 8, 'part_kind': 'gap', 'part': CASE WHEN estimate_gap_bytes < 0 AND status NOT IN ('completed', 'running')
             THEN 'never_allocated' ELSE 'estimate_gap' END, 'bytes': estimate_gap_bytes, 'begin': est_mem_bytes},
        {'part_no': 9, 'part_kind': 'level', 'part': 'allocated', 'bytes': mem_peak_allocated_bytes, 'begin': 0.0},
        {'part_no': 10, 'part_kind': 'measured', 'part': 'weights', 'bytes': mem_weights_bytes, 'begin': 0.0},
        {'part_no': 11, 'part_kind': 'measured', 'part': 'gradients', 'bytes': mem_gradients_bytes, 'begin': 0.0},
        {'part_no': 12, 'part_kind': 'measured', 'part': 'optimizer', 'bytes': mem_optimizer_bytes, 'begin': 0.0},
        {'part_no': 13, 'part_kind': 'measured', 'part': 'activations', 'bytes': mem_activations_bytes, 'begin': 0.0},
        {'part_no': 14, 'part_kind': 'measured', 'part': 'buffers', 'bytes': mem_buffers_bytes, 'begin': 0.0},
        {'part_no': 15, 'part_kind': 'measured', 'part': 'unknown', 'bytes': mem_unknown_bytes, 'begin': 0.0},
        {'part_no': 16, 'part_kind': 'measured', 'part': 'beyond_snapshot', 'bytes': beyond_snapshot_bytes,
         'begin': 0.0},
        {'part_no': 17, 'part_kind': 'gap', 'part': 'fragmentation', 'bytes': fragmentation_bytes,
         'begin': mem_peak_allocated_bytes},
        {'part_no': 18, 'part_kind': 'level', 'part': 'reserved', 'bytes': mem_peak_reserved_bytes, 'begin': 0.0},
        {'part_no': 19, 'part_kind': 'gap', 'part': 'outside_allocator', 'bytes': outside_allocator_bytes,
         'begin': mem_peak_reserved_bytes},
        {'part_no': 20, 'part_kind': 'level', 'part': 'process', 'bytes': mem_process_bytes, 'begin': 0.0},
        {'part_no': 21, 'part_kind': 'gap', 'part': 'other_processes', 'bytes': other_processes_bytes,
         'begin': mem_process_bytes},
        {'part_no': 22, 'part_kind': 'level', 'part': 'device', 'bytes': mem_used_max_bytes, 'begin': 0.0},
        {'part_no': 23, 'part_kind': 'gap', 'part': 'headroom', 'bytes': headroom_bytes,
         'begin': mem_total_bytes - headroom_bytes},
        {'part_no': 24, 'part_kind': 'level', 'part': 'card', 'bytes': mem_total_bytes, 'begin': 0.0}
    ], recursive := true)
    FROM memory_waterfall
)
SELECT
    run_id, CAST(part_no AS BIGINT) AS part_no, part_kind, part, bytes,
    CASE
        WHEN bytes IS NULL THEN NULL
        WHEN part_kind IN ('estimated', 'measured') THEN
            coalesce(sum(bytes) OVER (
                PARTITION BY run_id, part_kind ORDER BY part_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0)
        ELSE begin
    END AS begins_at_bytes
FROM parts;
