-- From the estimate to the card, per run, on the GPU that used most: estimated parts -> allocated -> reserved -> process
-- -> device -> card. Each gap is the difference of the levels beside it, so that the sums are exact; a gap with an
-- unknown end is NULL. Levels are peaks; allocated and reserved come from one source, else eps_frag would mix two.
CREATE VIEW memory_waterfall AS
WITH peaks AS (
    -- Every source's peak. Replayed snapshots count requested bytes, and only what their window shows.
    SELECT
        run_id, 'log' AS peak_source, 1 AS preference, mem_peak_allocated_bytes AS allocated,
        mem_peak_reserved_bytes AS reserved, false AS is_lower_bound, NULL AS path, NULL::BIGINT AS device
    FROM runs
    WHERE duplicate_of IS NULL
    UNION ALL
    SELECT
        j.run_id, s.mem_source, CASE WHEN s.mem_source = 'snapshot' THEN 4 ELSE 2 END,
        coalesce(s.peak_allocated_bytes, s.peak_requested_active_bytes), s.peak_reserved_bytes,
        coalesce(s.peak_is_lower_bound, false), s.source_path, s.device
    FROM run_snapshots AS j
    JOIN memory_snapshots AS s ON s.source_path = j.source_path AND s.device IS NOT DISTINCT FROM j.device
    WHERE coalesce(s.device, 0) >= 0  -- -1 is the CPU
    UNION ALL
    SELECT run_id, 'oom_report', 3, allocated_bytes, reserved_bytes, true, NULL, NULL
    FROM gpu_oom_reports
),
peak AS (
    SELECT run_id, unnest(arg_max(
        {'peak_source': peak_source, 'allocated': allocated, 'reserved': reserved, 'is_lower_bound': is_lower_bound},
        (allocated IS NOT NULL AND reserved IS NOT NULL, coalesce(reserved, allocated), -preference, allocated)
    ))
    FROM peaks
    WHERE allocated IS NOT NULL OR reserved IS NOT NULL
    GROUP BY run_id
),
snapshot AS (
    SELECT run_id, unnest(arg_max({'path': path, 'device': device}, (allocated, path)))
    FROM peaks
    WHERE peak_source = 'snapshot'
    GROUP BY run_id
),
parts AS (
    SELECT
        s.run_id, s.path, s.device,
        coalesce(sum(p.bytes) FILTER (p.category = 'parameters'), 0)::BIGINT AS weights,
        coalesce(sum(p.bytes) FILTER (p.category = 'gradients'), 0)::BIGINT AS gradients,
        coalesce(sum(p.bytes) FILTER (p.category = 'optimizer_state'), 0)::BIGINT AS optimizer,
        coalesce(sum(p.bytes) FILTER (p.category IN ('activations', 'input', 'autograd_detail')), 0)::BIGINT
            AS activations,
        coalesce(sum(p.bytes) FILTER (p.category IN ('communication', 'workspace', 'temporary')), 0)::BIGINT AS buffers,
        coalesce(sum(p.bytes) FILTER (p.category IN ('unknown', 'unattributed')), 0)::BIGINT AS unknown,
        sum(p.bytes)::BIGINT AS whole
    FROM snapshot AS s
    JOIN memory_at_peak AS p ON p.source_path = s.path AND p.device = s.device
    GROUP BY ALL
),
reports AS (
    SELECT
        run_id, max(mem_process_bytes) AS process, max(mem_used_bytes) AS used, max(mem_total_bytes) AS total
    FROM gpu_oom_reports
    GROUP BY run_id
),
samples AS (
    SELECT
        run_id, max(mem_used_max_bytes) AS used, max(mem_process_max_bytes) AS process, max(mem_total_bytes) AS total
    FROM run_gpu_memory
    GROUP BY run_id
),
levels AS (
    SELECT
        r.run_id, peak.peak_source, peak.is_lower_bound, peak.allocated, peak.reserved,
        greatest(reports.process, samples.process) AS process,
        greatest(reports.used, samples.used, reports.process, samples.process) AS used,
        CASE WHEN reports.used IS NOT NULL AND NOT coalesce(samples.used > reports.used, false) THEN 'oom_report'
            WHEN coalesce(samples.used, samples.process) IS NOT NULL THEN 'gpu_samples' END AS used_source,
        coalesce(reports.total, samples.total, a.memory_bytes) AS card
    FROM runs AS r
    LEFT JOIN peak USING (run_id)
    LEFT JOIN reports USING (run_id)
    LEFT JOIN samples USING (run_id)
    LEFT JOIN accelerators AS a USING (accelerator)
    WHERE r.duplicate_of IS NULL AND (peak.run_id IS NOT NULL OR samples.run_id IS NOT NULL)
)
SELECT
    r.run_id, r.origin, r.sweep, r.framework, r.model, r.accelerator, r.num_nodes, r.num_gpus, r.layout, r.recompute,
    r.status,
    e.est_mem_weights_bytes, e.est_mem_gradients_bytes, e.est_mem_optimizer_bytes, e.est_mem_activations_bytes,
    e.est_mem_logits_bytes, e.est_mem_buffers_bytes, e.est_mem_bytes,
    l.allocated - e.est_mem_bytes AS estimate_gap_bytes,
    parts.path AS snapshot_path, parts.device AS snapshot_device,
    parts.weights AS mem_weights_bytes, parts.gradients AS mem_gradients_bytes, parts.optimizer AS mem_optimizer_bytes,
    parts.activations AS mem_activations_bytes, parts.buffers AS mem_buffers_bytes, parts.unknown AS mem_unknown_bytes,
    l.allocated - parts.whole AS beyond_snapshot_bytes,
    l.allocated AS mem_peak_allocated_bytes, l.peak_source, l.is_lower_bound AS peak_is_lower_bound,
    l.reserved - l.allocated AS fragmentation_bytes,
    CASE WHEN l.allocated > 0 THEN l.reserved / l.allocated - 1 END AS eps_frag,
    l.reserved AS mem_peak_reserved_bytes,
    coalesce(l.process, l.used) - l.reserved AS outside_allocator_bytes,
    l.process AS mem_process_bytes,
    l.used - l.process AS other_processes_bytes,
    l.used AS mem_used_max_bytes, l.used_source,
    l.card - coalesce(l.used, l.process, l.reserved, l.allocated) AS headroom_bytes,
    l.card AS mem_total_bytes
FROM levels AS l
JOIN runs AS r USING (run_id)
LEFT JOIN parts USING (run_id)
LEFT JOIN estimates AS e ON e.run_id = r.run_id AND e.est_status = 'ok';
