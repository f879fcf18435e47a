-- Strong scaling: how much of its smallest size's speed per accelerator a model keeps as accelerators are added at the
-- same batch, for the best layout of any kind (strategy 'best') and for each set of parallel dimensions.
-- The baseline of a line is its smallest measured number of accelerators, on the fewest nodes. Speed is tokens/s per
-- accelerator, as in the rankings: it depends on no FLOP convention and exists where no MFU can be computed.
CREATE VIEW scaling_efficiency AS
WITH tried AS (
    SELECT r.origin, model, seq_len, gbs_tokens, accelerator, num_nodes, num_gpus, s.strategy, count(*) AS runs_tried
    FROM runs AS r
    JOIN run_outcomes AS o USING (run_id), (SELECT unnest([o.strategy, 'best']) AS strategy) AS s
    WHERE o.has_cell AND s.strategy IS NOT NULL
    GROUP BY ALL
),
points AS (
    SELECT
        l.origin, l.model, l.seq_len, l.gbs_tokens, l.accelerator, s.strategy, l.num_nodes, l.num_gpus,
        sum(l.repeats)::BIGINT AS runs_completed,
        arg_min(l, l.rank_in_cell) AS best
    FROM ranked_layouts AS l, (SELECT unnest([l.strategy, 'best']) AS strategy) AS s
    WHERE s.strategy IS NOT NULL
    GROUP BY ALL
),
with_baseline AS (
    SELECT *, first(best) OVER line AS baseline
    FROM points
    WINDOW line AS (
        PARTITION BY origin, model, seq_len, gbs_tokens, accelerator, strategy ORDER BY num_gpus, num_nodes
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
)
SELECT
    p.origin, p.model, p.seq_len, p.gbs_tokens, p.accelerator, p.strategy, p.num_nodes, p.num_gpus,
    p.best.params AS params, p.best.run_id AS run_id, p.best.layout AS layout,
    p.best.mfu AS mfu, p.best.tokens_per_s AS tokens_per_s, p.best.tokens_per_s_per_gpu AS tokens_per_s_per_gpu,
    p.baseline.run_id AS baseline_run_id,
    p.baseline.num_nodes AS baseline_num_nodes, p.baseline.num_gpus AS baseline_num_gpus,
    p.baseline.tokens_per_s_per_gpu AS baseline_tokens_per_s_per_gpu, p.baseline.mfu AS baseline_mfu,
    scaling_efficiency_of(p.best.tokens_per_s_per_gpu, p.baseline.tokens_per_s_per_gpu) AS scaling_efficiency,
    ideal_tokens_per_s(p.num_gpus, p.baseline.num_gpus, p.baseline.tokens_per_s) AS ideal_tokens_per_s,
    p.runs_completed,
    t.runs_tried
FROM with_baseline AS p
JOIN tried AS t
    ON t.origin = p.origin AND t.model = p.model AND t.seq_len = p.seq_len AND t.gbs_tokens = p.gbs_tokens
    AND t.num_nodes = p.num_nodes AND t.strategy = p.strategy
    AND t.num_gpus IS NOT DISTINCT FROM p.num_gpus AND t.accelerator IS NOT DISTINCT FROM p.accelerator
