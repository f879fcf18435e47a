-- Which nodes a run was on, each by its best source: the scheduler's table, else lines that a healthy run prints too
-- (launchers, the trainer's last line, NCCL's initialisation), else a line on a failure alone. Rates leave the last ones
-- out: a node that only failures name would always fail.
CREATE VIEW run_hosts AS
WITH found AS (
    SELECT run_id, trim(unnest(string_split(hosts, ','))) AS host, 1 AS priority, 'scheduler' AS host_source
    FROM runs
    WHERE hosts IS NOT NULL
    UNION ALL
    SELECT run_id, host, 2, 'log'
    FROM events
    WHERE host IS NOT NULL AND kind IN ('launch', 'training_end')
    UNION ALL
    SELECT DISTINCT f.run_id, n.host, 3, 'nccl'
    FROM nccl_ranks AS n
    JOIN run_files AS f ON f.path = n.source_path AND n.line_no >= f.from_line AND n.line_no <= coalesce(f.to_line, n.line_no)
    WHERE n.host IS NOT NULL
    UNION ALL
    -- A scheduler's row on a job names all of its nodes, none of them in particular.
    SELECT run_id, host, 4, 'failure'
    FROM events
    WHERE host IS NOT NULL AND kind NOT IN ('launch', 'training_end', 'scheduler')
    UNION ALL
    SELECT run_id, first_failed_host, 4, 'failure'
    FROM runs
    WHERE first_failed_host IS NOT NULL
)
SELECT run_id, node_name(host) AS host, arg_min(host_source, priority) AS host_source
FROM found
WHERE node_name(host) <> ''
GROUP BY ALL
