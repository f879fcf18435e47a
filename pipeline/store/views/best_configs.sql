-- The fastest layout of each cell, the second fastest, the lead in tokens/s/GPU and the noise that it has to exceed
-- (see the macros lead_over, lead_noise and is_tied),
-- and the chance that it is the best of all, given how far each speed can be trusted.
CREATE VIEW best_configs AS
WITH tried AS (
    SELECT origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, count(*) AS runs_tried
    FROM runs
    WHERE duplicate_of IS NULL
    GROUP BY ALL
),
podium AS (
    SELECT
        *,
        sum(repeats) OVER cell AS runs_completed,
        count(*) OVER cell AS layouts_completed,
        lead(run_id) OVER by_rank AS runner_up_run_id,
        lead(layout) OVER by_rank AS runner_up_layout,
        lead(tokens_per_s_per_gpu) OVER by_rank AS runner_up_tokens_per_s_per_gpu,
        lead(mfu) OVER by_rank AS runner_up_mfu,
        lead(speed_noise) OVER by_rank AS runner_up_noise,
        list(tokens_per_s_per_gpu) OVER in_order AS speeds,
        list(speed_noise) OVER in_order AS noises
    FROM ranked_layouts
    WINDOW
        cell AS (PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator),
        by_rank AS (
            PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator ORDER BY rank_in_cell
        ),
        in_order AS (
            PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator ORDER BY rank_in_cell
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
    QUALIFY rank_in_cell = 1
),
lead_of_winner AS (
    SELECT
        *,
        lead_over(tokens_per_s_per_gpu, runner_up_tokens_per_s_per_gpu) AS margin,
        CASE WHEN runner_up_run_id IS NOT NULL
            THEN lead_noise(speed_noise, runner_up_noise)
        END AS noise,
        CASE WHEN runner_up_run_id IS NOT NULL THEN chance_of_first(speeds, noises) END AS chance_best
    FROM podium
)
SELECT
    w.origin, w.model, w.num_nodes, w.num_gpus, w.seq_len, w.gbs_tokens, w.accelerator,
    w.run_id, w.framework, w.framework_version, w.torch_version, w.nccl_version, w.cluster, w.params, w.gpus_per_node, w.dp, w.tp, w.pp, w.cp, w.ep, w.vpp, w.zero_stage,
    w.mbs, w.gas, w.recompute, w.precision, w.sequence_parallel, w.pipeline_schedule, w.layout, w.variant, w.options_id, w.strategy,
    w.tokens_per_s_per_gpu, w.tokens_per_s, w.step_time_s, w.mfu, w.mfu_logged, w.hfu, w.model_tflops_per_gpu,
    w.mem_peak_allocated_bytes, w.mem_peak_reserved_bytes, w.repeats, w.repeat_spread,
    w.run_noise, w.noise_basis, w.noise_repeats, w.low_tokens_per_s_per_gpu, w.high_tokens_per_s_per_gpu,
    w.runner_up_run_id, w.runner_up_layout, w.runner_up_tokens_per_s_per_gpu, w.runner_up_mfu,
    w.margin, w.noise, is_tied(w.margin, w.noise) AS is_tie, w.chance_best,
    t.runs_tried,
    w.runs_completed::BIGINT AS runs_completed,
    w.layouts_completed
FROM lead_of_winner AS w
JOIN tried AS t
    ON t.origin = w.origin AND t.model = w.model AND t.num_nodes = w.num_nodes AND t.seq_len = w.seq_len
    AND t.gbs_tokens = w.gbs_tokens
    AND t.num_gpus IS NOT DISTINCT FROM w.num_gpus AND t.accelerator IS NOT DISTINCT FROM w.accelerator
