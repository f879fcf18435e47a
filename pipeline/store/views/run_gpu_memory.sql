-- What nvidia-smi or DCGM saw on each GPU while a run was going on. Samples belong to the runs of their directory and of
-- those above. Both print local times without a zone; where a record and a run of one directory do not overlap as
-- printed, one of the two clocks is in another zone: the samples are then moved by the whole number of half hours (at
-- most 14 hours) that brings their first one nearest to the run's start.
CREATE VIEW run_gpu_memory AS
WITH records AS (
    SELECT source_path, run_dir, min(ts) AS first_at, max(ts) AS last_at
    FROM gpu_samples
    WHERE ts IS NOT NULL
    GROUP BY source_path, run_dir
),
aligned AS (
    SELECT
        r.run_id, f.source_path, r.started_at, r.ended_at, r.mem_peak_reserved_bytes,
        CASE
            WHEN f.first_at <= r.ended_at AND f.last_at >= r.started_at THEN 0.0
            ELSE 1800.0 * round(epoch(r.started_at - f.first_at) / 1800.0)
        END AS clock_offset_s
    FROM runs AS r
    JOIN (SELECT *, unnest(folder_and_above(run_dir)) AS folder FROM records) AS f ON f.folder = r.run_dir
    WHERE r.duplicate_of IS NULL AND r.ended_at > r.started_at
)
SELECT
    a.run_id, a.source_path,
    concat_ws(' ', s.host, coalesce(s.gpu_uuid, CAST(s.gpu_index AS VARCHAR), 'GPU')) AS gpu,
    a.clock_offset_s,
    count(*) AS samples,
    max(s.mem_used_bytes) AS mem_used_max_bytes,
    max(s.mem_process_bytes) AS mem_process_max_bytes,
    max(s.mem_total_bytes) AS mem_total_bytes,
    max(a.mem_peak_reserved_bytes) AS mem_peak_reserved_bytes,
    coalesce(max(s.mem_used_bytes), max(s.mem_process_bytes)) - max(a.mem_peak_reserved_bytes) AS outside_allocator_bytes,
    avg(s.gpu_utilisation) AS gpu_utilisation
FROM aligned AS a
JOIN gpu_samples AS s
    ON s.source_path = a.source_path
    AND s.ts + to_seconds(a.clock_offset_s) BETWEEN a.started_at AND a.ended_at
WHERE abs(a.clock_offset_s) <= 14 * 3600
GROUP BY a.run_id, a.source_path, gpu, a.clock_offset_s;
