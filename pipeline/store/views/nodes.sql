-- Every node that runs were on, or that lines name: how often runs failed there, beside the runs of all other nodes, and
-- what speaks against the node itself. A failure on many nodes counts for each of them; a line that names one does not.
CREATE VIEW nodes AS
WITH tried AS (
    SELECT
        o.origin, h.host, o.is_failure AND h.host_source <> 'failure' AS is_failure, h.host_source <> 'failure' AS is_known,
        r.started_at, r.ended_at
    FROM run_hosts AS h
    JOIN run_outcomes AS o USING (run_id)
    JOIN runs AS r USING (run_id)
    WHERE o.origin <> 'published'
),
counted AS (
    SELECT
        origin, host,
        count(*) AS runs_tried,
        count(*) FILTER (is_known AND is_failure IS NOT NULL) AS runs_judged,
        count(*) FILTER (is_known AND is_failure) AS runs_failed,
        min(started_at) AS first_run_at,
        max(coalesce(ended_at, started_at)) AS last_run_at
    FROM tried
    GROUP BY origin, host
),
alone AS (
    SELECT run_id, any_value(host) AS host
    FROM run_hosts
    GROUP BY run_id
    HAVING count(*) = 1
),
-- a finding that names a rank is about the node where the run was on one alone
lines AS (
    SELECT o.origin, o.run_id, o.outcome, e.kind, coalesce(node_name(e.host), a.host) AS host, e.host IS NOT NULL AS is_named
    FROM events AS e
    JOIN run_outcomes AS o USING (run_id)
    LEFT JOIN alone AS a USING (run_id)
    WHERE o.origin <> 'published' AND e.kind NOT IN ('scheduler', 'launch', 'training_end')
),
against AS (
    SELECT
        origin, host,
        -- what a layout or its time limit does to a run is not the node's doing
        count(DISTINCT run_id) FILTER (is_named AND outcome IN ('hang', 'infra', 'crash', 'unexplained')) AS runs_naming,
        count(DISTINCT run_id) FILTER (kind = 'straggler') AS runs_straggling,
        count(DISTINCT run_id) FILTER (kind IN ('oom_by_others', 'gpu_shared', 'gpu_busy', 'not_ending')) AS runs_occupied
    FROM lines
    WHERE host IS NOT NULL
    GROUP BY origin, host
),
benchmarks AS (
    SELECT origin, node_name(host) AS host, count(*) AS slow_findings
    FROM nccl_findings
    WHERE nccl_rule = 'slow_host' AND host IS NOT NULL AND origin <> 'published'
    GROUP BY ALL
),
joined AS (
    SELECT
        origin, host,
        coalesce(runs_tried, 0) AS runs_tried, coalesce(runs_judged, 0) AS runs_judged, coalesce(runs_failed, 0) AS runs_failed,
        coalesce(runs_naming, 0) AS runs_naming, coalesce(runs_straggling, 0) AS runs_straggling,
        coalesce(slow_findings, 0) AS slow_findings, coalesce(runs_occupied, 0) AS runs_occupied,
        first_run_at, last_run_at,
        sum(coalesce(runs_failed, 0)) OVER (PARTITION BY origin) - coalesce(runs_failed, 0) AS failed_elsewhere,
        sum(coalesce(runs_judged, 0)) OVER (PARTITION BY origin) - coalesce(runs_judged, 0) AS judged_elsewhere
    FROM counted
    FULL JOIN against USING (origin, host)
    FULL JOIN benchmarks USING (origin, host)
),
rated AS (
    SELECT
        *,
        CASE WHEN runs_judged > 0 THEN runs_failed / runs_judged END AS failure_rate,
        wilson_low(runs_failed, runs_judged) AS failure_rate_low,
        wilson_high(runs_failed, runs_judged) AS failure_rate_high,
        CASE WHEN judged_elsewhere > 0 THEN failed_elsewhere / judged_elsewhere END AS failure_rate_elsewhere
    FROM joined
)
SELECT
    origin, host, runs_tried, runs_judged, runs_failed, failure_rate, failure_rate_low, failure_rate_high,
    failure_rate_elsewhere,
    coalesce(failure_rate_low > failure_rate_elsewhere, false) AS is_failing_more,
    runs_naming, runs_straggling, slow_findings, runs_occupied, first_run_at, last_run_at
FROM rated
