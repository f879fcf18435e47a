-- How often runs fail, by everything that may explain it, in long format: one dimension at a time, within each sweep
-- and (sweep NULL) over all sweeps of an origin. Runs without a verdict (running, cancelled, unknown) are tried,
-- but stand in no rate. A run of several hosts counts under each of them. A condition on the dimension is met before
-- anything is counted, so that a page pays for what it shows.
CREATE VIEW failure_rates AS
WITH judged AS (
    SELECT
        o.run_id, o.origin, o.sweep, o.status, o.outcome, o.is_failure, o.gpu_hours, o.strategy, o.day, o.sweep AS own_sweep,
        r.framework, r.model, r.accelerator, r.recompute, r.precision,
        r.num_nodes::VARCHAR AS num_nodes, r.num_gpus::VARCHAR AS num_gpus, r.dp::VARCHAR AS dp, r.tp::VARCHAR AS tp,
        r.pp::VARCHAR AS pp, r.cp::VARCHAR AS cp, r.ep::VARCHAR AS ep, r.zero_stage::VARCHAR AS zero_stage,
        r.mbs::VARCHAR AS mbs, r.gas::VARCHAR AS gas
    FROM run_outcomes AS o
    JOIN runs AS r USING (run_id)
),
described AS (
    SELECT
        origin, sweep, status, outcome, is_failure, gpu_hours,
        CASE dimension WHEN 'own_sweep' THEN 'sweep' ELSE dimension END AS dimension, value
    FROM (
        UNPIVOT judged
        ON own_sweep, framework, model, accelerator, num_nodes, num_gpus, strategy, dp, tp, pp, cp, ep, zero_stage, mbs,
            gas, recompute, precision, day
        INTO NAME dimension VALUE value
    )
    UNION ALL
    SELECT o.origin, o.sweep, o.status, o.outcome, o.is_failure, o.gpu_hours, 'host', h.host
    FROM run_hosts AS h
    JOIN run_outcomes AS o USING (run_id)
    WHERE h.host_source <> 'failure'
),
of_sweeps AS (
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
    GROUP BY ALL
),
counted AS (
    FROM of_sweeps
    WHERE sweep IS NOT NULL
    UNION ALL
    SELECT
        origin, NULL AS sweep, dimension, value,
        sum(COLUMNS('^runs_'))::BIGINT, sum(gpu_hours_lost), sum(failures_without_gpu_hours)::BIGINT
    FROM of_sweeps
    GROUP BY origin, dimension, value
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
