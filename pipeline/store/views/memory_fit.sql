-- What each run that ran out of GPU memory, or came near to it, needs; with the bytes that show it.
CREATE VIEW memory_fit AS
WITH reports AS (
    -- The report of the line that the run's status quotes; else that of the fullest allocator, the first of equal ones.
    SELECT g.run_id, unnest(arg_max(
        {'requested': oom_requested_bytes, 'free': oom_device_free_bytes, 'inactive': oom_inactive_bytes,
         'allocated': allocated_bytes, 'line_no': g.line_no},
        (e.text IS NOT NULL, coalesce(reserved_bytes, 0), -g.line_no)
    ))
    FROM gpu_oom_reports AS g
    LEFT JOIN (
        SELECT run_id, events.source_path, events.line_no, text
        FROM events
        JOIN runs USING (run_id)
        WHERE kind = 'oom' AND text = status_evidence
    ) AS e ON e.run_id = g.run_id AND e.source_path = g.source_path AND e.line_no = g.line_no
    GROUP BY g.run_id
),
snapshots AS (
    SELECT j.run_id, unnest(arg_max(
        {'requested': s.oom_requested_bytes, 'free': s.oom_device_free_bytes, 'inactive': s.oom_inactive_bytes,
         'allocated': s.oom_requested_active_bytes, 'is_expandable': s.is_expandable},
        (s.oom_reserved_bytes, s.source_path)
    ))
    FROM run_snapshots AS j
    JOIN memory_snapshots AS s ON s.source_path = j.source_path AND s.device IS NOT DISTINCT FROM j.device
    WHERE s.oom_events > 0 AND s.oom_requested_bytes IS NOT NULL  -- statistics and traces count failures only
    GROUP BY j.run_id
),
blamed AS (
    SELECT run_id, any_value(text) AS text FROM events WHERE kind = 'oom_by_others' GROUP BY run_id
),
configured AS (  -- the allocator's settings, where a log prints its environment
    SELECT run_id, bool_or(contains(value, 'expandable_segments:True')) AS is_expandable
    FROM settings
    WHERE name ILIKE '%alloc_conf'
    GROUP BY run_id
),
facts AS (
    SELECT
        r.run_id, r.status = 'oom' AS failed, b.text AS others, r.recompute, r.mbs,
        CASE
            WHEN r.status <> 'oom' THEN 'peak'
            WHEN s.requested IS NOT NULL THEN 'snapshot'
            WHEN o.requested IS NOT NULL THEN 'oom_report'
            WHEN e.est_mem_bytes IS NOT NULL THEN 'estimate'
        END AS verdict_basis,
        coalesce(s.requested, o.requested) AS requested,
        CASE WHEN r.status = 'oom' AND s.requested IS NULL AND o.requested IS NOT NULL THEN o.line_no END AS oom_line_no,
        CASE WHEN s.requested IS NOT NULL THEN s.free ELSE o.free END AS free,
        CASE
            WHEN r.status <> 'oom' THEN w.fragmentation_bytes
            WHEN s.requested IS NOT NULL THEN s.inactive
            ELSE o.inactive
        END AS inactive,
        coalesce(s.allocated, o.allocated, w.mem_peak_allocated_bytes) AS allocated,
        coalesce(s.is_expandable, c.is_expandable) AS is_expandable,
        coalesce(w.mem_total_bytes, a.memory_bytes) AS card,
        greatest(w.mem_used_max_bytes, w.mem_peak_reserved_bytes, w.mem_peak_allocated_bytes) AS held,
        e.est_mem_bytes, e.est_mem_bytes - coalesce(w.mem_total_bytes, a.memory_bytes) AS est_missing,
        CASE WHEN w.is_whole THEN w.mem_weights_bytes + w.mem_gradients_bytes + w.mem_optimizer_bytes
            ELSE e.est_mem_weights_bytes + e.est_mem_gradients_bytes + e.est_mem_optimizer_bytes END AS states,
        CASE WHEN w.is_whole THEN w.mem_activations_bytes ELSE e.est_mem_activations_bytes END AS activations,
        NOT coalesce(w.is_whole, false) AS is_estimated
    FROM runs AS r
    LEFT JOIN (
        -- A snapshot that shows little of what was allocated (of another rank, or cut short) does not show the parts.
        SELECT
            *,
            coalesce(abs(beyond_snapshot_bytes) <= snapshot_gap() * mem_peak_allocated_bytes
                AND mem_unknown_bytes <= snapshot_unknown() * mem_peak_allocated_bytes, false) AS is_whole
        FROM memory_waterfall
    ) AS w USING (run_id)
    LEFT JOIN estimates AS e ON e.run_id = r.run_id AND e.est_status = 'ok'
    LEFT JOIN accelerators AS a ON a.accelerator = r.accelerator
    LEFT JOIN reports AS o ON o.run_id = r.run_id
    LEFT JOIN snapshots AS s ON s.run_id = r.run_id
    LEFT JOIN blamed AS b ON b.run_id = r.run_id
    LEFT JOIN configured AS c ON c.run_id = r.run_id
    WHERE r.duplicate_of IS NULL
),
judged AS (
    SELECT
        *, requested - free AS missing,
        memory_verdict_of(
            failed, others IS NOT NULL, requested - free, inactive, page_bytes(requested), is_expandable, est_missing,
            states, activations, recompute, mbs, allocated, card
        ) AS verdict
    FROM facts
    WHERE failed OR held >= mem_near_limit() * card
)
SELECT
    r.run_id, r.origin, r.sweep, r.framework, r.model, r.accelerator, r.num_nodes, r.num_gpus, r.layout, r.recompute,
    r.mbs, r.status, j.verdict AS mem_verdict, j.verdict_basis,
    memory_evidence_of(
        verdict, others, requested, free, inactive, est_mem_bytes, states, activations, is_estimated, j.recompute, j.mbs,
        allocated, held, card
    ) AS verdict_evidence,
    j.requested AS oom_requested_bytes, j.free AS oom_device_free_bytes, j.missing AS oom_missing_bytes,
    j.inactive AS oom_inactive_bytes, j.is_expandable, j.allocated AS allocated_bytes, j.held AS held_bytes,
    j.est_mem_bytes, j.states AS states_bytes, j.activations AS activations_bytes,
    j.is_estimated AS parts_are_estimated, j.card AS mem_total_bytes, r.status_evidence, r.source_path, j.oom_line_no
FROM judged AS j
JOIN runs AS r USING (run_id);
