-- Every planned run with the run that fills it. A run whose path or job carries the name fills it whatever its layout is, and
-- what differs is named; without such a run, one of the same cell, framework and layout does. A trial on a CPU shows that
-- the files start, and fills a planned run only until one on its accelerator does.
CREATE VIEW plan_status AS
WITH RECURSIVE jobs AS (
    SELECT job_id, min(job_name) AS job_name
    FROM scheduler_jobs
    WHERE job_id IS NOT NULL AND regexp_matches(job_name, 'plan-[0-9a-f]{6}-[0-9]{3}')
    GROUP BY job_id
),
candidates AS (
    SELECT
        r.*,
        regexp_extract(concat_ws('|', j.job_name, r.run_dir, r.source_path), 'plan-[0-9a-f]{6}-[0-9]{3}') AS named,
        CASE r.status WHEN 'completed' THEN 0 WHEN 'running' THEN 1 ELSE 2 END AS preference,
        r.accelerator IS NOT DISTINCT FROM 'CPU' AS is_trial
    FROM runs AS r
    LEFT JOIN jobs AS j USING (job_id)
    WHERE r.duplicate_of IS NULL AND r.origin <> 'published'
),
paired AS (
    SELECT p.planned_run_id, c.run_id, 'name' AS matched_by, c.is_trial, c.preference, c.started_at, c.attempt
    FROM planned_runs AS p
    JOIN candidates AS c ON c.named = p.planned_run_id
    UNION ALL
    SELECT p.planned_run_id, c.run_id, 'layout', c.is_trial, c.preference, c.started_at, c.attempt
    FROM planned_runs AS p
    JOIN candidates AS c
        ON c.model = p.model AND c.num_gpus = p.num_gpus AND c.seq_len = p.seq_len AND c.gbs_tokens = p.gbs_tokens
        AND c.accelerator = p.accelerator AND c.framework = p.framework
        AND c.dp = p.dp AND c.tp = p.tp AND c.pp = p.pp AND c.mbs = p.mbs AND c.gas = p.gas
    WHERE c.named = '' -- a run that another plan started is its
        AND coalesce(c.cp, 1) = p.cp AND coalesce(c.ep, 1) = p.ep AND coalesce(c.vpp, 1) = p.vpp
        AND coalesce(c.zero_stage, p.zero_stage) = p.zero_stage
        AND coalesce(c.dp_replicate, 1) = p.dp_replicate
        AND coalesce(c.recompute, 'none') = p.recompute
),
counted AS (
    SELECT *, (count(*) FILTER (matched_by = 'name') OVER (PARTITION BY planned_run_id))::BIGINT AS plan_attempts
    FROM paired
),
chosen AS (
    SELECT planned_run_id, run_id, matched_by, is_trial, plan_attempts
    FROM counted
    QUALIFY row_number() OVER (
        PARTITION BY planned_run_id
        ORDER BY is_trial, matched_by = 'layout', preference, started_at DESC NULLS LAST, attempt DESC, run_id
    ) = 1
),
filled AS (
    SELECT
        p.*, c.run_id, c.matched_by, coalesce(c.is_trial, false) AS is_trial, coalesce(c.plan_attempts, 0) AS plan_attempts,
        r.status, r.status_evidence, r.step_time_s, r.tokens_per_s_per_gpu, r.mem_peak_reserved_bytes, r.gpu_hours,
        CASE
            WHEN c.run_id IS NULL THEN 'missing'
            WHEN r.status IN ('completed', 'running') THEN r.status
            ELSE 'failed'
        END AS plan_outcome,
        -- Only what the run states is compared: a log need not name every degree.
        nullif(concat_ws(', ',
            CASE WHEN r.accelerator <> p.accelerator THEN format('{} instead of {}', r.accelerator, p.accelerator) END,
            CASE WHEN r.num_gpus <> p.num_gpus THEN format('num_gpus {} instead of {}', r.num_gpus, p.num_gpus) END,
            CASE WHEN r.dp <> p.dp THEN format('dp {} instead of {}', r.dp, p.dp) END,
            CASE WHEN r.tp <> p.tp THEN format('tp {} instead of {}', r.tp, p.tp) END,
            CASE WHEN r.pp <> p.pp THEN format('pp {} instead of {}', r.pp, p.pp) END,
            CASE WHEN r.cp <> p.cp THEN format('cp {} instead of {}', r.cp, p.cp) END,
            CASE WHEN r.ep <> p.ep THEN format('ep {} instead of {}', r.ep, p.ep) END,
            CASE WHEN r.vpp <> p.vpp THEN format('vpp {} instead of {}', r.vpp, p.vpp) END,
            CASE WHEN r.mbs <> p.mbs THEN format('mbs {} instead of {}', r.mbs, p.mbs) END,
            CASE WHEN r.gas <> p.gas THEN format('gas {} instead of {}', r.gas, p.gas) END,
            CASE WHEN r.zero_stage <> p.zero_stage AND p.dp * p.cp > 1
                THEN format('zero_stage {} instead of {}', r.zero_stage, p.zero_stage) END,
            CASE WHEN r.recompute <> p.recompute THEN format('recompute {} instead of {}', r.recompute, p.recompute) END,
            CASE WHEN r.seq_len <> p.seq_len THEN format('seq_len {} instead of {}', r.seq_len, p.seq_len) END
        ), '') AS layout_differs
    FROM planned_runs AS p
    LEFT JOIN chosen AS c USING (planned_run_id)
    LEFT JOIN runs AS r ON r.run_id = c.run_id
),
-- what mends a run may run out of memory, too, and be mended by another
attempted AS (
    SELECT mends AS planned_run_id, planned_run_id AS attempt_id, plan_outcome FROM filled WHERE mends IS NOT NULL
    UNION
    SELECT a.planned_run_id, f.planned_run_id, f.plan_outcome
    FROM attempted AS a
    JOIN filled AS f ON f.mends = a.attempt_id
),
mended AS (
    SELECT planned_run_id, bool_or(plan_outcome = 'completed') AS is_mended
    FROM attempted
    GROUP BY planned_run_id
)
SELECT
    f.plan_id, f.planned_run_id, f.position, f.purpose, f.mends, f.plan_change,
    f.framework, f.accelerator, f.num_nodes, f.num_gpus, f.model, f.seq_len, f.gbs_tokens, f.layout,
    f.plan_outcome, f.matched_by, f.is_trial, f.layout_differs, f.run_id, f.plan_attempts,
    f.status, f.status_evidence, f.step_time_s, f.tokens_per_s_per_gpu, f.mem_peak_reserved_bytes, f.gpu_hours,
    f.believed_step_time_s, f.believed_lo_s, f.believed_hi_s, f.oom_probability, f.expected_gain, f.planned_gpu_hours,
    f.walltime_s, f.why,
    CASE WHEN NOT f.is_trial THEN f.step_time_s / f.believed_step_time_s END AS step_time_over_predicted,
    CASE WHEN f.plan_outcome = 'failed' THEN coalesce(m.is_mended, false) END AS is_mended
FROM filled AS f
LEFT JOIN mended AS m USING (planned_run_id)
