-- Every run attempt that counts (no duplicates): the class of its ending, whether that is a failure, whether the run is
-- ranked, and what else the views on reliability and ranking group by. The rules stand here once.
CREATE VIEW run_outcomes AS
WITH classed AS (
    SELECT
        *,
        CASE WHEN status = 'completed' AND held_after_end_s > 0 THEN 'held' ELSE outcome_of(status) END AS outcome,
        strategy_of(dp, tp, pp, cp, ep) AS strategy,
        model IS NOT NULL AND num_nodes IS NOT NULL AND seq_len IS NOT NULL AND gbs_tokens IS NOT NULL AS has_cell
    FROM runs
    WHERE duplicate_of IS NULL
),
spent AS (
    SELECT
        *,
        CASE WHEN outcome = 'held' THEN held_after_end_s / 3600 * num_gpus END AS gpu_hours_held,
        -- Hours held after the end are among those of the log where its steps leave as many unexplained.
        coalesce(gpu_hours, 0) - coalesce(step_time_s * (last_step - first_step + 1) / 3600 * num_gpus, 0)
            >= stamped_share() * gpu_hours_held AS is_held_in_log,
        CASE WHEN gpu_hours_held IS NULL OR is_held_in_log THEN gpu_hours
            ELSE coalesce(gpu_hours, 0) + gpu_hours_held END AS known_gpu_hours
    FROM classed
),
numbered AS (
    SELECT *, count(*) OVER (PARTITION BY origin, sweep, run_dir, attempt) AS alike
    FROM spent
),
runs_of_attempts AS (
    -- Attempts are numbered within a directory of one run, and within each log of a directory of several.
    SELECT
        *,
        CASE WHEN max(alike) OVER (PARTITION BY origin, sweep, run_dir) = 1 THEN run_dir ELSE source_path END AS run_path
    FROM numbered
),
continued AS (
    -- The step to which later attempts of the same run went back at most: those before it were done once and kept.
    SELECT
        *,
        min(first_step) OVER (
            PARTITION BY origin, sweep, run_path, model, layout
            ORDER BY attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS goes_on_from
    FROM runs_of_attempts
),
billed AS (
    -- The scheduler's hours stand on the last attempt of a job; they cover the attempts before it too.
    SELECT
        *,
        CASE WHEN allocated_gpu_hours IS NULL THEN known_gpu_hours ELSE greatest(
            known_gpu_hours,
            allocated_gpu_hours + coalesce(known_gpu_hours, 0)
                - coalesce(sum(known_gpu_hours) OVER (PARTITION BY origin, sweep, job_id), 0)
        ) END AS billed_gpu_hours
    FROM continued
)
SELECT
    run_id, origin, sweep, status, outcome,
    is_failure_of(status) AS is_failure,
    has_cell,
    has_cell AND may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu) AS is_ranked,
    strategy,
    -- what somebody would submit again; two runs of which the layout is not known in full are not the same
    md5(concat_ws('|', framework, coalesce(model, '?'), coalesce(accelerator, '?'), list_transform(
        [num_nodes, num_gpus, seq_len, gbs_tokens, dp, tp, pp, cp, ep, vpp, zero_stage, dp_replicate, mbs, gas],
        lambda number: coalesce(number::VARCHAR, '?')
    )::VARCHAR, coalesce(recompute, '?'), coalesce(precision, '?'), coalesce(sequence_parallel::VARCHAR, '?'),
        coalesce(pipeline_schedule, '?'), coalesce(variant, '?'), coalesce(options_id, '?'),
        CASE WHEN model IS NULL OR (dp + tp + pp + mbs + gas) IS NULL THEN source_path END
    )) AS configuration_id,
    strftime(started_at, '%Y-%m-%d') AS day,
    coalesce(
        gpu_hours * 3600 / num_gpus,
        CASE WHEN ended_at > started_at THEN epoch(ended_at) - epoch(started_at) END
    ) AS duration_s,
    billed_gpu_hours AS gpu_hours,
    greatest(CASE WHEN allocated_gpu_hours IS NOT NULL THEN billed_gpu_hours - gpu_hours END, gpu_hours_held) AS gpu_hours_idle,
    gpu_hours_held,
    CASE WHEN is_failure_of(status) AND goes_on_from > first_step AND last_step >= first_step THEN
        gpu_hours * least(goes_on_from - first_step, last_step - first_step + 1) / (last_step - first_step + 1)
    END AS gpu_hours_kept
FROM billed
