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
        p.total_params_b, coalesce(p.is_claimed_best, false) AS is_claimed_best, p.comparability,
        a.peak_bf16_tflops, a.peak_fp8_tflops, a.peak_fp4_tflops,
        -- picotron/utils.py get_mfu: 989.5e12 on every device; torchtitan and llm-foundry print theirs
        CASE WHEN r.peak_tflops_logged IS NULL AND r.framework = 'picotron' THEN 989.5 ELSE r.peak_tflops_logged
        END AS divided_by_tflops,
        -- the peak that makes the printed MFU agree with the recomputed FLOPs
        r.model_tflops_per_gpu / nullif(r.mfu_logged, 0) AS implied_peak_tflops
    FROM runs AS r
    LEFT JOIN published_runs AS p USING (run_id)
    LEFT JOIN accelerators AS a ON a.accelerator = r.accelerator
),
judged AS (
    SELECT
        *,
        duplicate_of IS NULL AS is_own_run,
        -- in large models the embedding is a thousandth of the work: there the ratio means nothing
        coalesce(
            is_full_formula AND tied_ratio > 1 + mfu_cause() AND abs(mfu_ratio / tied_ratio - 1) <= embedding_cause(), false
        ) AS counts_embedding_twice,
        -- the shape may be inferred from the printed MFU; either way label and figures belong to different models
        coalesce(abs(params / (total_params_b * 1e9) - 1) > label_tolerance(), false) AS is_mislabelled,
        -- printed over recomputed FLOPs, once both are set against the same peak
        mfu_ratio * coalesce(divided_by_tflops / peak_tflops, 1) AS flops_ratio
    FROM facts
),
explained AS (
    SELECT
        *,
        CASE WHEN abs(flops_ratio - 1) > mfu_differs() THEN nearest_cause(flops_ratio, [
            {'ratio': 6.0 * active_params / flops_per_token, 'words': '6N, without attention'},
            {'ratio': 0.5 + 3.0 * active_params / flops_per_token, 'words': '6N + 6Lhs, attention as causal, at half'},
            {'ratio': 1 - 6.0 * vocab_size * hidden_size / flops_per_token,
                'words': 'an embedding matrix left out, as torchtitan does'},
            {'ratio': 4.0 / 3, 'words': 'recomputation counted: that is HFU'},
            -- Korthikanti et al., 2205.05198, equation 3 without recomputation, over 6 N
            {'ratio': 72.0 * num_layers * hidden_size ** 2 * (
                1 + seq_len / (6.0 * hidden_size) + vocab_size / (12.0 * num_layers * hidden_size)
            ) / flops_per_token, 'words': '72Lh2(1 + s/6h + V/12Lh), which is a GPT without gate and with all KV heads'}
        ]) END AS convention,
        CASE WHEN divided_by_tflops IS NULL AND abs(mfu_ratio - 1) > mfu_differs() THEN nearest_cause(mfu_ratio, [
            {'ratio': 0.5, 'words': 'twice the dense peak, as with sparsity or at the next lower precision,'},
            {'ratio': peak_tflops / 312, 'words': 'the A100''s 312 TFLOP/s, which nanoGPT takes for every device'},
            {'ratio': peak_tflops / 989.5, 'words': 'the H100''s 989 TFLOP/s'},
            {'ratio': peak_tflops / peak_bf16_tflops, 'words': 'the 16-bit peak'},
            {'ratio': peak_tflops / peak_fp8_tflops, 'words': 'the 8-bit peak'},
            {'ratio': peak_tflops / peak_fp4_tflops, 'words': 'the 4-bit peak'}
        ]) END AS other_peak
    FROM judged
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
        run_id, 'wrong_peak',
        format(
            'the printed MFU divides by {:.1f} TFLOP/s{}; {}', divided_by_tflops,
            CASE WHEN peak_tflops_logged IS NULL THEN ', which picotron takes for every device' ELSE '' END,
            format(
                CASE WHEN peak_tflops IS NULL THEN '{} has no known peak at {}'
                    ELSE 'the dense peak of {} at {} is {:.1f}' END,
                accelerator, coalesce(precision, '16 bits'), coalesce(peak_tflops, 0)
            )
        )
    FROM judged
    WHERE is_own_run AND mfu_logged IS NOT NULL AND divided_by_tflops IS NOT NULL AND accelerator IS NOT NULL
        AND (peak_tflops IS NOT NULL OR accelerator = 'CPU')
        AND coalesce(abs(divided_by_tflops / peak_tflops - 1) > mfu_cause(), true)

    UNION ALL
    SELECT
        run_id, 'wrong_peak',
        format(
            'printed {:.1f} %, recomputed {:.1f} %: the ratio {:.3f} is that of dividing by {} instead of {:.1f}',
            100 * mfu_logged, 100 * mfu, mfu_ratio, other_peak, peak_tflops
        )
    FROM explained
    WHERE is_own_run AND is_full_formula AND NOT counts_embedding_twice
        AND other_peak IS NOT NULL AND convention IS NULL

    UNION ALL
    SELECT
        run_id, 'other_convention',
        format(
            'printed {:.1f} %, recomputed {:.1f} % ({}): the FLOPs counted are {:.3f} of ours, as of {}{}',
            100 * mfu_logged, 100 * mfu, mfu_basis, flops_ratio, convention,
            CASE WHEN other_peak IS NOT NULL THEN format('; dividing by {} would look alike', other_peak) ELSE '' END
        )
    FROM explained
    WHERE is_own_run AND is_full_formula AND NOT counts_embedding_twice AND convention IS NOT NULL

    UNION ALL
    SELECT
        run_id, 'logged_mfu_differs',
        format(
            'printed {:.1f} %, recomputed {:.1f} % ({}); no usual convention or peak explains it{}',
            100 * mfu_logged, 100 * mfu, mfu_basis,
            CASE WHEN divided_by_tflops IS NULL
                THEN format(', the peak would have to be {:.0f} TFLOP/s', implied_peak_tflops) ELSE '' END
        )
    FROM explained
    WHERE is_own_run AND is_full_formula AND NOT counts_embedding_twice
        AND abs(flops_ratio - 1) > mfu_differs() AND convention IS NULL AND other_peak IS NULL

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
        AND tflops_per_gpu_logged < low_tflops() * model_tflops_per_gpu

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
    WHERE is_own_run AND hfu < low_hfu() * mfu

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

    -- a failed run without steps claims nothing, a completed one should have something to recompute
    UNION ALL
    SELECT
        run_id, 'not_recomputable',
        mfu_basis || CASE
            WHEN tokens_per_s_per_gpu IS NULL THEN missing([
                CASE WHEN step_time_s IS NULL THEN 'step_time_s' END,
                CASE WHEN tokens_per_s IS NULL THEN 'tokens_per_s' END,
                CASE WHEN gbs_tokens IS NULL THEN 'gbs_tokens' END,
                CASE WHEN num_gpus IS NULL THEN 'num_gpus' END
            ])
            WHEN active_params IS NULL THEN missing([
                CASE WHEN params IS NULL THEN 'params' END,
                CASE WHEN num_layers IS NULL THEN 'num_layers' END,
                CASE WHEN hidden_size IS NULL THEN 'hidden_size' END,
                CASE WHEN num_heads IS NULL THEN 'num_heads' END,
                CASE WHEN num_kv_heads IS NULL THEN 'num_kv_heads' END,
                CASE WHEN ffn_hidden_size IS NULL THEN 'ffn_hidden_size' END,
                CASE WHEN gated_mlp IS NULL THEN 'gated_mlp' END,
                CASE WHEN vocab_size IS NULL THEN 'vocab_size' END,
                CASE WHEN tie_word_embeddings IS NULL THEN 'tie_word_embeddings' END
            ])
            WHEN accelerator IS NULL AND implied_peak_tflops IS NOT NULL
                THEN format('; the printed MFU implies a peak of {:.0f} TFLOP/s', implied_peak_tflops)
            ELSE ''
        END
    FROM judged
    WHERE is_own_run AND mfu IS NULL
        AND (mfu_logged IS NOT NULL OR tokens_per_s_per_gpu IS NOT NULL OR tflops_per_gpu_logged IS NOT NULL
            OR (status = 'completed' AND origin <> 'published'))

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
