-- What a printed MFU hides, found from figures and never from notes. One row per run and finding; a run may have
-- several. Rows that repeat another run are judged only as claims ("this is the best of its cell").
CREATE VIEW mfu_audit AS
WITH facts AS (
    SELECT
        r.*,
        r.mfu_logged / r.mfu AS mfu_ratio,
        r.mfu_basis LIKE '6N + 12Lhs%' AS is_full_formula,
        -- FLOPs per token with the shared embedding counted as input and output: N + V h instead of N
        CASE WHEN r.tie_word_embeddings THEN 1 + 6.0 * r.vocab_size * r.hidden_size / r.flops_per_token END AS tied_ratio,
        p.total_params_b, coalesce(p.is_claimed_best, false) AS is_claimed_best, p.comparability
    FROM runs AS r
    LEFT JOIN published_runs AS p USING (run_id)
),
judged AS (
    SELECT
        *,
        duplicate_of IS NULL AS is_own_run,
        -- in large models the embedding is a thousandth of the work: there the ratio says nothing
        coalesce(
            is_full_formula AND tied_ratio > 1.01 AND abs(mfu_ratio / tied_ratio - 1) <= 0.005, false
        ) AS counts_embedding_twice,
        -- the shape may be inferred from the printed MFU; either way label and figures belong to different models
        coalesce(abs(params / (total_params_b * 1e9) - 1) > label_tolerance(), false) AS is_mislabelled
    FROM facts
),
claims AS (
    SELECT
        c.*, f.run_id AS fastest_run_id, f.layout AS fastest_layout, f.tokens_per_s_per_gpu AS fastest_speed,
        f.mfu AS fastest_mfu, f.mfu_logged AS fastest_mfu_logged
    FROM judged AS c
    JOIN best_configs AS f
        ON f.origin = c.origin AND f.model = c.model AND f.num_nodes = c.num_nodes AND f.seq_len = c.seq_len
        AND f.gbs_tokens = c.gbs_tokens
        AND f.num_gpus IS NOT DISTINCT FROM c.num_gpus AND f.accelerator IS NOT DISTINCT FROM c.accelerator
    WHERE c.is_claimed_best
),
findings AS (
    SELECT
        run_id, 'claimed_best_not_fastest' AS finding,
        format(
            '{} at {:.0f} tokens/s/GPU is presented as best, but {} reaches {:.0f} ({:.1f} % more){}',
            layout, tokens_per_s_per_gpu, fastest_layout, fastest_speed,
            100 * (fastest_speed / tokens_per_s_per_gpu - 1),
            CASE WHEN counts_embedding_twice AND fastest_mfu_logged < mfu_logged THEN format(
                ': its printed MFU of {:.2f} % counts the tied embedding twice ({:.2f} % when counted once), so it '
                || 'passed the faster run''s {:.2f} %',
                100 * mfu_logged, 100 * mfu, 100 * fastest_mfu_logged
            ) ELSE '' END
        ) AS detail
    FROM claims
    WHERE fastest_speed > tokens_per_s_per_gpu * 1.0001  -- figures are printed with two decimals

    UNION ALL
    SELECT
        c.run_id, 'claimed_best_not_ranked',
        format(
            '{} at {:.0f} tokens/s/GPU is presented as best, but its shape has {:.1f}B parameters and its label says '
            || '{:.1f}B; the fastest run that may be ranked is {} at {:.0f}',
            c.layout, c.tokens_per_s_per_gpu, c.params / 1e9, c.total_params_b, c.fastest_layout, c.fastest_speed
        )
    FROM claims AS c
    WHERE c.is_mislabelled

    UNION ALL
    SELECT
        run_id, 'tied_embedding_counted_twice',
        format(
            'printed {:.2f} %, recomputed {:.2f} %: the ratio {:.3f} is that of counting the tied embedding twice ({:.3f})',
            100 * mfu_logged, 100 * mfu, mfu_ratio, tied_ratio
        )
    FROM judged
    WHERE is_own_run AND counts_embedding_twice

    UNION ALL
    SELECT
        run_id, 'label_shape_mismatch',
        format(
            'labelled {:.1f}B, but the shape ({} layers, {} KV heads) has {:.1f}B parameters{}',
            total_params_b, num_layers, num_kv_heads, params / 1e9,
            CASE WHEN mfu_logged IS NOT NULL AND tokens_per_s_per_gpu IS NOT NULL THEN format(
                ', and so has its printed MFU: {:.2f} % at {:.0f} tokens/s/GPU is {:.1f} GFLOP per token',
                100 * mfu_logged, tokens_per_s_per_gpu, mfu_logged * peak_tflops * 1e3 / tokens_per_s_per_gpu
            ) ELSE '' END
        )
    FROM judged
    WHERE is_own_run AND is_mislabelled

    UNION ALL
    SELECT
        run_id, 'logged_mfu_differs',
        format('printed {:.1f} %, recomputed {:.1f} % ({})', 100 * mfu_logged, 100 * mfu, mfu_basis)
    FROM judged
    WHERE is_own_run AND is_full_formula AND NOT counts_embedding_twice AND abs(mfu_ratio - 1) > 0.05

    -- recomputation explains a printed figure above the model's, nothing explains one below
    UNION ALL
    SELECT
        run_id, 'logged_tflops_differ',
        format(
            'printed {:.1f} TFLOP/s, recomputed {:.1f}: it counts {:.0f} % of the model''s FLOPs',
            tflops_per_gpu_logged, model_tflops_per_gpu, 100 * tflops_per_gpu_logged / model_tflops_per_gpu
        )
    FROM judged
    WHERE is_own_run AND flops_per_token IS NOT NULL AND NOT is_mislabelled
        AND tflops_per_gpu_logged < 0.9 * model_tflops_per_gpu

    UNION ALL
    SELECT
        run_id, 'mfu_above_100',
        format('{:.0f} % of the peak ({})', 100 * greatest(mfu, mfu_logged), coalesce(mfu_basis, 'as printed'))
    FROM judged
    WHERE is_own_run AND greatest(mfu, mfu_logged) > 1

    UNION ALL
    SELECT
        run_id, 'hfu_below_mfu',
        format('printed HFU {:.1f} %, recomputed MFU {:.1f} % ({})', 100 * hfu, 100 * mfu, mfu_basis)
    FROM judged
    WHERE is_own_run AND hfu < mfu * 0.99

    UNION ALL
    SELECT
        run_id, 'layout_mismatch',
        format('{} needs {} accelerators, the run had {}', layout, dp * tp * pp * coalesce(cp, 1), num_gpus)
    FROM judged
    WHERE is_own_run AND dp * tp * pp * coalesce(cp, 1) <> num_gpus

    UNION ALL
    SELECT
        run_id, 'batch_mismatch',
        format('{} makes {} sequences per step, the batch is {}', layout, dp * gas * mbs, gbs)
    FROM judged
    WHERE is_own_run AND dp * gas * mbs <> gbs

    UNION ALL
    SELECT run_id, 'not_recomputable', mfu_basis
    FROM judged
    WHERE is_own_run AND mfu IS NULL AND (mfu_logged IS NOT NULL OR tokens_per_s_per_gpu IS NOT NULL)

    UNION ALL
    SELECT run_id, 'not_comparable', comparability
    FROM judged
    WHERE is_own_run AND sweep = 'frontier_configs' AND comparability NOT IN ('comparable', 'no MFU published')
)
SELECT
    f.run_id, j.origin, j.framework, j.model, j.num_nodes, j.layout, f.finding, f.detail, j.mfu, j.mfu_logged,
    j.mfu_ratio, j.source_path, j.line_no
FROM findings AS f
JOIN judged AS j USING (run_id)
