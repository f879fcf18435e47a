-- How often runs fail, by everything that may explain it, in long format: one dimension at a time, within each sweep
-- and (sweep NULL) over all sweeps of an origin. Runs without a verdict (running, cancelled, unknown) are tried,
-- but stand in no rate. A run of several hosts counts under each of them.
CREATE VIEW failure_rates AS
WITH hosts_of_runs AS (
    SELECT run_id, list(host ORDER BY host) AS hosts
    FROM run_hosts
    WHERE host_source <> 'failure'
    GROUP BY run_id
),
described AS (
    SELECT
        o.*,
        unnest(list_concat([
            {'dimension': 'sweep', 'value': o.sweep},
            {'dimension': 'framework', 'value': r.framework},
            {'dimension': 'model', 'value': r.model},
            {'dimension': 'accelerator', 'value': r.accelerator},
            {'dimension': 'num_nodes', 'value': r.num_nodes::VARCHAR},
            {'dimension': 'num_gpus', 'value': r.num_gpus::VARCHAR},
            {'dimension': 'strategy', 'value': o.strategy},
            {'dimension': 'dp', 'value': r.dp::VARCHAR},
            {'dimension': 'tp', 'value': r.tp::VARCHAR},
            {'dimension': 'pp', 'value': r.pp::VARCHAR},
            {'dimension': 'cp', 'value': r.cp::VARCHAR},
            {'dimension': 'ep', 'value': r.ep::VARCHAR},
            {'dimension': 'zero_stage', 'value': r.zero_stage::VARCHAR},
            {'dimension': 'mbs', 'value': r.mbs::VARCHAR},
            {'dimension': 'gas', 'value': r.gas::VARCHAR},
            {'dimension': 'recompute', 'value': r.recompute},
            {'dimension': 'precision', 'value': r.precision},
            {'dimension': 'day', 'value': o.day}
        ], list_transform(coalesce(h.hosts, []), lambda name: {'dimension': 'host', 'value': name})), recursive := true)
    FROM run_outcomes AS o
    JOIN runs AS r USING (run_id)
    LEFT JOIN hosts_of_runs AS h USING (run_id)
),
counted AS (
    SELECT
        origin, sweep, dimension, value,
        count(*) AS runs_tried,
        count(is_failure) AS runs_judged,
        count(*) FILTER (status = 'completed') AS runs_completed,
        count(*) FILTER (outcome = 'held') AS runs_held,
        count(*) FILTER (is_failure) AS runs_failed,
        count(*) FILTER (outcome = 'oom') AS runs_oom,
        count(*) FILTER (outcome = 'hang') AS runs_hang,
        count(*) FILTER (outcome = 'infra') AS runs_infra,
        count(*) FILTER (outcome = 'timeout') AS runs_timeout,
        count(*) FILTER (outcome = 'crash') AS runs_crash,
        count(*) FILTER (outcome = 'unexplained') AS runs_unexplained,
        sum(gpu_hours) FILTER (is_failure) AS gpu_hours_lost,
        count(*) FILTER (is_failure AND gpu_hours IS NULL) AS failures_without_gpu_hours
    FROM described
    WHERE value IS NOT NULL
    GROUP BY GROUPING SETS ((origin, dimension, value), (origin, sweep, dimension, value))
    HAVING sweep IS NOT NULL OR grouping(sweep) = 1
)
SELECT
    origin, sweep, dimension, value, runs_tried, runs_judged, runs_completed, runs_held, runs_failed, runs_oom, runs_hang,
    runs_infra, runs_timeout, runs_crash, runs_unexplained,
    CASE WHEN runs_judged > 0 THEN runs_failed / runs_judged END AS failure_rate,
    wilson_low(runs_failed, runs_judged) AS failure_rate_low,
    wilson_high(runs_failed, runs_judged) AS failure_rate_high,
    CASE WHEN runs_failed = 0 THEN 0.0 ELSE gpu_hours_lost END AS gpu_hours_lost,
    failures_without_gpu_hours
FROM counted
