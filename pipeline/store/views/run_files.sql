-- Which files with facts belong to which run: its own log, between where it begins and where the next run in it does; and
-- files beside logs: of the only run of their unit, else of the only run of their directory. Of several runs it is open
-- which one such a file is of: it belongs to none.
CREATE VIEW run_files AS
WITH own AS (
    SELECT
        run_id, source_path AS path, run_dir,
        CASE WHEN row_number() OVER per_file = 1 THEN 1 ELSE line_no END AS from_line,
        lead(line_no) OVER per_file - 1 AS to_line
    FROM runs
    WHERE duplicate_of IS NULL AND origin <> 'published' AND source_path IS NOT NULL
    WINDOW per_file AS (PARTITION BY source_path ORDER BY line_no, attempt)
),
facts AS (
    SELECT source_path, any_value(run_dir) AS run_dir
    FROM (
        SELECT source_path, run_dir FROM nccl_files
        UNION ALL SELECT source_path, run_dir FROM nccl_hangs
        UNION ALL SELECT source_path, run_dir FROM flight_records
    )
    WHERE source_path NOT IN (SELECT path FROM own)
    GROUP BY source_path
),
by_unit AS (
    SELECT f.source_path, any_value(o.run_id) AS run_id
    FROM facts AS f
    JOIN files AS beside ON beside.path = f.source_path
    JOIN files AS log ON log.unit = beside.unit
    JOIN own AS o ON o.path = log.path
    GROUP BY f.source_path
    HAVING count(DISTINCT o.run_id) = 1
),
by_folder AS (
    SELECT f.source_path, any_value(o.run_id) AS run_id
    FROM facts AS f
    JOIN own AS o USING (run_dir)
    WHERE f.source_path NOT IN (SELECT source_path FROM by_unit)
    GROUP BY f.source_path
    HAVING count(DISTINCT o.run_id) = 1
)
SELECT run_id, path, coalesce(from_line, 1) AS from_line, to_line FROM own
UNION ALL
SELECT run_id, source_path, 1::BIGINT, NULL::BIGINT FROM by_unit
UNION ALL
SELECT run_id, source_path, 1::BIGINT, NULL::BIGINT FROM by_folder
