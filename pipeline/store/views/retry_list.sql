-- Configurations that never got their answer because of the machines: worth submitting again as they are. Left out is
-- what another try would not change: a configuration that completed, is running, ran out of memory or crashed. A time
-- limit counts when the run was stretched, else the limit is too short for the configuration; so does memory that other
-- processes held on the GPU, as those of a job before it that did not end.
CREATE VIEW retry_list AS
WITH tries AS (
    SELECT
        o.*, r.started_at, r.attempt, r.source_path,
        o.status IN ('node_fail', 'preempted', 'nccl_error', 'hang')
            OR (o.status = 'timeout' AND s.run_id IS NOT NULL)
            OR (o.status = 'oom' AND b.run_id IS NOT NULL) AS is_infra
    FROM run_outcomes AS o
    JOIN runs AS r USING (run_id)
    LEFT JOIN stretched_runs AS s USING (run_id)
    LEFT JOIN (SELECT DISTINCT run_id FROM events WHERE kind = 'oom_by_others') AS b USING (run_id)
    WHERE o.origin <> 'published'
),
configurations AS (
    SELECT
        origin, sweep, configuration_id,
        count(*) AS attempts,
        count(*) FILTER (is_infra) AS infra_failures,
        spent_on(gpu_hours, is_infra) AS gpu_hours_lost,
        -- without timestamps the numbers of the attempts order them
        arg_max(run_id, (coalesce(started_at, TIMESTAMP '1970-01-01'), attempt, source_path)) FILTER (is_infra) AS run_id
    FROM tries
    GROUP BY ALL
    HAVING count(*) FILTER (is_infra) > 0
        AND count(*) FILTER (NOT is_infra AND status NOT IN ('cancelled', 'unknown', 'truncated', 'timeout')) = 0
),
evidence AS (
    SELECT run_id, text, min(line_no) AS line_no
    FROM events
    WHERE run_id IN (SELECT run_id FROM configurations)
    GROUP BY run_id, text
)
SELECT
    c.run_id, c.origin, c.sweep, r.framework, r.model, r.num_nodes, r.num_gpus, r.accelerator, r.seq_len, r.gbs_tokens,
    r.layout, r.recompute, r.precision, r.status,
    CASE r.status
        WHEN 'node_fail' THEN 'a node failed'
        WHEN 'preempted' THEN 'the scheduler preempted it'
        WHEN 'nccl_error' THEN 'NCCL or the network failed'
        WHEN 'timeout' THEN format(
            'the time limit came after {:.0f} times the usual duration', s.stretch
        )
        WHEN 'hang' THEN 'a collective hung'
        WHEN 'oom' THEN 'other processes held the GPU''s memory'
    END || CASE WHEN c.infra_failures > 1
        THEN format('; {} of {} attempts ended so or alike, look before submitting again', c.infra_failures, c.attempts)
        ELSE '' END AS reason,
    r.status_confidence, r.status_evidence, e.line_no AS evidence_line_no, c.attempts, c.infra_failures,
    CASE WHEN r.step_basis IS NULL OR r.step_basis IN ('step', 'epoch') THEN r.last_step END AS last_step, r.steps_planned,
    c.gpu_hours_lost, r.ended_at, r.job_id, r.run_dir, r.source_path
FROM configurations AS c
JOIN runs AS r USING (run_id)
LEFT JOIN stretched_runs AS s USING (run_id)
LEFT JOIN evidence AS e ON e.run_id = r.run_id AND e.text = r.status_evidence
