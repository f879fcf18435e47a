-- Completed runs beside their estimate. The ratio is measured over estimated, so that 3 reads "three times slower than
-- estimated". The estimate of a framework that stalls on launches counts the stalls; against the hardware it does not.
-- Runs that no ranking takes are left out here too.
CREATE VIEW estimator_residuals AS
SELECT
    r.run_id, r.origin, r.sweep, r.framework, r.accelerator, r.model, r.num_nodes, r.num_gpus, r.layout,
    strategy_of(r.dp, r.tp, r.pp, r.cp, r.ep) AS strategy,
    CASE
        WHEN r.pp > 1 AND coalesce(r.num_gpus > rack.usual_gpus_per_domain, r.num_nodes > 1) THEN 'PP over nodes'
        WHEN r.tp > coalesce(rack.usual_gpus_per_domain, r.gpus_per_node) THEN 'TP over nodes'
        WHEN r.pp > 1 THEN 'PP in a node'
        WHEN r.tp > 1 THEN 'TP in a node'
        ELSE 'DP only'
    END || coalesce(' · ZeRO-' || r.zero_stage::VARCHAR, '') AS pattern,
    e.est_profile,
    r.step_time_s, e.est_step_time_s, r.step_time_s / e.est_step_time_s AS time_ratio,
    r.step_time_s / (e.est_step_time_s - coalesce(e.est_time_stall_s, 0)) AS hardware_time_ratio,
    r.step_time_s / e.expected_step_time_s AS expected_time_ratio,
    r.step_time_s > penalised_ratio() * e.est_step_time_s AS is_penalised,
    r.mfu, e.est_mfu,
    r.mem_peak_allocated_bytes, e.est_mem_bytes, r.mem_peak_allocated_bytes / e.est_mem_bytes AS mem_ratio,
    r.source_path
FROM runs AS r
JOIN estimates AS e USING (run_id)
-- Where links join hosts (an NVL72 rack), a node of the pattern is what they join.
LEFT JOIN accelerator_links AS rack
    ON rack.accelerator = r.accelerator AND rack.usual_gpus_per_domain > rack.usual_gpus_per_node
WHERE r.status = 'completed' AND r.duplicate_of IS NULL AND r.quarantine_reason IS NULL
    AND e.est_status = 'ok' AND r.step_time_s IS NOT NULL;
