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
norms AS (
    SELECT
        origin, sweep, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, steps_planned,
        median(duration_s) AS usual_duration_s, count(*) AS runs_alike
    FROM timed
    WHERE status = 'completed'
    GROUP BY ALL
    HAVING count(*) >= stretched_peers()
),
with_norm AS (
    SELECT t.*, n.usual_duration_s, n.runs_alike
    FROM timed AS t
    JOIN norms AS n
        ON n.origin = t.origin AND n.model = t.model AND n.num_nodes = t.num_nodes AND n.seq_len = t.seq_len
        AND n.gbs_tokens = t.gbs_tokens AND n.sweep IS NOT DISTINCT FROM t.sweep
        AND n.num_gpus IS NOT DISTINCT FROM t.num_gpus AND n.accelerator IS NOT DISTINCT FROM t.accelerator
        AND n.steps_planned IS NOT DISTINCT FROM t.steps_planned
    WHERE t.duration_s >= n.usual_duration_s * stretched_factor()
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
