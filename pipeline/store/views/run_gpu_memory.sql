-- What nvidia-smi or DCGM saw on each GPU while a run was going on. Samples belong to the runs of their directory and of
-- those above, by clocks that may be in another zone (`clock_offset_s`).
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
        clock_offset_s(f.first_at, f.last_at, r.started_at, r.ended_at) AS clock_offset_s
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
    avg(s.gpu_utilisation) AS gpu_utilisation,
    avg(s.power_w) AS power_mean_w,
    avg(s.power_w) FILTER (s.gpu_utilisation > idle_utilisation()) AS power_busy_w
FROM aligned AS a
JOIN gpu_samples AS s
    ON s.source_path = a.source_path
    AND s.ts + to_seconds(a.clock_offset_s) BETWEEN a.started_at AND a.ended_at
WHERE is_clock_offset(a.clock_offset_s)
GROUP BY a.run_id, a.source_path, gpu, a.clock_offset_s;
