-- Runs that took many times what like runs of their sweep take: minutes that became hours. The norm is the median
-- duration of the completed runs of the same cell and planned steps. A slow layout differs from lost time in what
-- its own steps account for.
CREATE VIEW stretched_runs AS
WITH timed AS (
    SELECT
        o.run_id, o.origin, o.sweep, o.status, o.outcome, o.duration_s, r.framework, r.model, r.num_nodes, r.num_gpus,
        r.accelerator, r.seq_len, r.gbs_tokens, r.layout, r.steps_planned, r.started_at, r.source_path,
        CASE WHEN r.step_basis IS DISTINCT FROM 'ordinal' THEN r.step_time_s * (r.last_step - r.first_step + 1)
        END AS in_steps_s
    FROM run_outcomes AS o
    JOIN runs AS r USING (run_id)
    WHERE o.has_cell AND o.duration_s IS NOT NULL
),
with_norm AS (
    SELECT
        *,
        median(duration_s) FILTER (status = 'completed') OVER alike AS usual_duration_s,
        count(*) FILTER (status = 'completed') OVER alike AS runs_alike
    FROM timed
    WINDOW alike AS (
        PARTITION BY origin, sweep, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, steps_planned
    )
)
SELECT
    run_id, origin, sweep, framework, model, num_nodes, num_gpus, layout, status, started_at, duration_s,
    usual_duration_s, duration_s / usual_duration_s AS stretch, runs_alike, in_steps_s,
    CASE
        WHEN in_steps_s IS NULL THEN 'unknown'
        WHEN in_steps_s > usual_duration_s * stretched_factor() THEN 'slow_steps'
        ELSE 'outside_of_steps'
    END AS stretch_cause,
    (duration_s - usual_duration_s) / 3600 * num_gpus AS excess_gpu_hours,
    source_path
FROM with_norm
WHERE runs_alike >= stretched_peers() AND duration_s >= usual_duration_s * stretched_factor()
