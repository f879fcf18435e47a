-- What each sweep cost, by how its runs ended, and how much of that went by until the winners had run. The winner of a
-- cell is the fastest configuration that the sweep itself completed there (median over repeats); it is found at its
-- first run. The order is known only in cells of which every run has a start time.
CREATE VIEW sweep_cost AS
WITH own AS (
    SELECT o.*, r.startup_s, r.model, r.num_nodes, r.num_gpus, r.seq_len, r.gbs_tokens, r.accelerator, r.started_at,
        r.tokens_per_s_per_gpu
    FROM run_outcomes AS o
    JOIN runs AS r USING (run_id)
),
spent AS (
    SELECT
        origin, sweep,
        count(*) AS runs_tried,
        count(*) FILTER (status = 'completed') AS runs_completed,
        count(*) FILTER (is_failure) AS runs_failed,
        count(*) FILTER (gpu_hours IS NULL) AS runs_without_gpu_hours,
        sum(gpu_hours) AS gpu_hours,
        spent_on(gpu_hours - coalesce(gpu_hours_held, 0), status = 'completed') AS gpu_hours_completed,
        spent_on(gpu_hours_held, outcome = 'held') AS gpu_hours_held,
        spent_on(gpu_hours, outcome = 'oom') AS gpu_hours_oom,
        spent_on(gpu_hours, outcome = 'hang') AS gpu_hours_hang,
        spent_on(gpu_hours, outcome = 'infra') AS gpu_hours_infra,
        spent_on(gpu_hours, outcome = 'timeout') AS gpu_hours_timeout,
        spent_on(gpu_hours, outcome = 'crash') AS gpu_hours_crash,
        spent_on(gpu_hours, outcome = 'unexplained') AS gpu_hours_unexplained,
        spent_on(gpu_hours, outcome IN ('undecided', 'running')) AS gpu_hours_undecided,
        sum(gpu_hours_idle) AS gpu_hours_idle,
        sum(startup_s / 3600 * num_gpus) AS gpu_hours_startup
    FROM own
    GROUP BY origin, sweep
),
queues AS (
    SELECT origin, sweep, sum(hours) AS gpu_hours_queued
    FROM (
        SELECT origin, sweep, coalesce(job_id, run_id) AS job, max(queue_wait_s / 3600 * num_gpus) AS hours
        FROM runs
        WHERE duplicate_of IS NULL
        GROUP BY ALL
    )
    GROUP BY origin, sweep
),
configurations AS (
    SELECT
        origin, sweep, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, configuration_id,
        median(tokens_per_s_per_gpu) AS speed,
        min(started_at) AS first_started_at
    FROM own
    WHERE is_ranked
    GROUP BY ALL
),
winners AS (
    SELECT
        origin, sweep, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
        arg_max({'at': first_started_at}, (speed, configuration_id)).at AS found_at  -- a struct, as arg_max skips NULL
    FROM configurations
    GROUP BY ALL
),
cells AS (
    SELECT
        o.origin, o.sweep,
        bool_and(o.started_at IS NOT NULL) AS is_in_order,
        sum(o.gpu_hours) AS gpu_hours,
        sum(o.gpu_hours) FILTER (o.started_at <= w.found_at) AS gpu_hours_until
    FROM own AS o
    JOIN winners AS w
        ON w.origin = o.origin AND w.model = o.model AND w.num_nodes = o.num_nodes AND w.seq_len = o.seq_len
        AND w.gbs_tokens = o.gbs_tokens AND w.sweep IS NOT DISTINCT FROM o.sweep
        AND w.num_gpus IS NOT DISTINCT FROM o.num_gpus AND w.accelerator IS NOT DISTINCT FROM o.accelerator
    GROUP BY o.origin, o.sweep, o.model, o.num_nodes, o.num_gpus, o.seq_len, o.gbs_tokens, o.accelerator
),
search AS (
    SELECT
        origin, sweep,
        count(*) AS cells_answered,
        count(*) FILTER (is_in_order AND gpu_hours_until IS NOT NULL) AS cells_in_order,
        sum(gpu_hours_until) FILTER (is_in_order) AS gpu_hours_until_winner,
        sum(gpu_hours) FILTER (is_in_order AND gpu_hours_until IS NOT NULL) AS gpu_hours_of_cells_in_order
    FROM cells
    GROUP BY origin, sweep
)
SELECT
    s.origin, s.sweep, s.runs_tried, s.runs_completed, s.runs_failed, s.gpu_hours, s.gpu_hours_completed, s.gpu_hours_held,
    s.gpu_hours_oom, s.gpu_hours_hang, s.gpu_hours_infra, s.gpu_hours_timeout, s.gpu_hours_crash,
    s.gpu_hours_unexplained, s.gpu_hours_undecided, s.gpu_hours_idle, s.gpu_hours_startup,
    q.gpu_hours_queued, s.runs_without_gpu_hours,
    coalesce(f.cells_answered, 0) AS cells_answered,
    coalesce(f.cells_in_order, 0) AS cells_in_order,
    f.gpu_hours_until_winner, f.gpu_hours_of_cells_in_order
FROM spent AS s
JOIN queues AS q ON q.origin = s.origin AND q.sweep IS NOT DISTINCT FROM s.sweep
LEFT JOIN search AS f ON f.origin = s.origin AND f.sweep IS NOT DISTINCT FROM s.sweep
