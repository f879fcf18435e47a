-- Every completed layout of each cell, fastest first. Repeats of one layout are one row: the medians over its runs,
-- and their spread, which limits how far a lead can be trusted. Runs of another version of the framework, torch or
-- NCCL, with other options, or on another cluster, are no repeats: what they differ by is no noise. Runs whose logs do not name the version
-- are repeats of each other only. Tokens/s/GPU decides, not MFU: within a cell the model and
-- the card are the same, and tokens/s/GPU depends on no FLOP convention.
-- A cell is one number of accelerators: on a single node 1, 2 and 4 of them are different questions.
-- How far a speed can be trusted follows from the repeats that the store has (see noise.sql): of other layouts on as many
-- nodes, then of the same cluster, then of the framework there, then its own, each drawn towards the level before, the
-- first towards what bundled sweeps show. A level leaves out what the next one counts, so that no repeat counts twice.
-- Repeats further apart than a penalised run is from its estimate are incidents: they doubt their own layout only.
-- Runs without a model, node count, sequence length or batch have no cell; an unknown accelerator is a group of its own.
CREATE VIEW ranked_layouts AS
WITH layouts AS (
    SELECT
        origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
        -- what makes a layout: everything that a user can choose
        framework, gpus_per_node, dp, tp, pp, cp, ep, vpp, zero_stage, dp_replicate, mbs, gas,
        recompute, precision, sequence_parallel, pipeline_schedule, layout, variant, options_id, o.strategy,
        -- what ran it
        framework_version, torch_version, nccl_version, cluster,
        -- two runs of which the layout is not known in full are not repeats of each other
        CASE WHEN (dp + tp + pp + mbs + gas) IS NULL THEN run_id END AS only_run,
        median(tokens_per_s_per_gpu) AS tokens_per_s_per_gpu,
        median(tokens_per_s) AS tokens_per_s,
        median(step_time_s) AS step_time_s,
        median(mfu) AS mfu,
        median(mfu_logged) AS mfu_logged,
        median(hfu) AS hfu,
        median(model_tflops_per_gpu) AS model_tflops_per_gpu,
        max(params) AS params,
        -- memory is a limit, so the worst repeat counts
        max(mem_peak_allocated_bytes) AS mem_peak_allocated_bytes,
        max(mem_peak_reserved_bytes) AS mem_peak_reserved_bytes,
        count(*) AS repeats,
        CASE WHEN count(*) > 1
            THEN (max(tokens_per_s_per_gpu) - min(tokens_per_s_per_gpu)) / median(tokens_per_s_per_gpu)
        END AS repeat_spread,
        avg(tokens_per_s_per_gpu) AS mean_tokens_per_s_per_gpu,
        list(tokens_per_s_per_gpu ORDER BY tokens_per_s_per_gpu) AS repeat_speeds,
        count(*) - 1 AS freedom,
        coalesce(var_samp(ln(tokens_per_s_per_gpu)) * (count(*) - 1), 0) AS squares,
        max(tokens_per_s_per_gpu) <= min(tokens_per_s_per_gpu) * penalised_ratio() AS is_typical,
        -- what a median over steps misses even where nothing differs between runs: its standard error (1.2533 = sqrt(pi / 2))
        median(1.2533 * (step_time_p90_s - step_time_p10_s) / 2 / z_80() / step_time_s
            / sqrt(greatest(steps_logged - coalesce(warmup_steps_dropped, 0), 1))) AS step_noise,
        min(speed_resolution(tokens_per_s_per_gpu, tokens_per_s, num_gpus, step_time_s, gbs_tokens)) AS speed_resolution,
        list({'id': run_id, 'speed': tokens_per_s_per_gpu}) AS repeated
    FROM runs
    JOIN (SELECT run_id, strategy FROM run_outcomes WHERE is_ranked) AS o USING (run_id)
    GROUP BY ALL
),
named AS (
    SELECT
        *,
        -- the run nearest to the median represents its layout, of two equally near the faster one
        list_sort([{
            'distance': round(abs(r.speed - tokens_per_s_per_gpu), 6), 'slowness': -r.speed, 'id': r.id
        } for r in repeated])[1].id AS run_id
    FROM layouts
),
pooled AS (
    SELECT
        *,
        CASE WHEN is_typical THEN freedom ELSE 0 END AS own_freedom,
        CASE WHEN is_typical THEN squares ELSE 0 END AS own_squares,
        sum(own_freedom) OVER by_nodes AS nodes_freedom, sum(own_squares) OVER by_nodes AS nodes_squares,
        sum(own_freedom) OVER by_cluster AS cluster_freedom, sum(own_squares) OVER by_cluster AS cluster_squares,
        sum(own_freedom) OVER by_framework AS framework_freedom,
        sum(own_squares) OVER by_framework AS framework_squares
    FROM named
    WINDOW
        by_nodes AS (PARTITION BY origin, num_nodes),
        by_cluster AS (PARTITION BY origin, num_nodes, cluster),
        by_framework AS (PARTITION BY origin, num_nodes, cluster, framework)
),
doubted AS (
    SELECT
        *,
        updated_variance(noise_of_nodes(num_nodes) ** 2, nodes_squares - cluster_squares, nodes_freedom - cluster_freedom)
            AS of_nodes,
        updated_variance(of_nodes, cluster_squares - framework_squares, cluster_freedom - framework_freedom) AS of_cluster,
        updated_variance(of_cluster, framework_squares - own_squares, framework_freedom - own_freedom) AS of_framework,
        sqrt(greatest(
            updated_variance(of_framework, squares, freedom),
            CASE WHEN NOT is_typical THEN squares / freedom END,
            step_noise ** 2,
            -- printed digits: a figure lies anywhere within its last one
            least(speed_resolution, noise_of_nodes(num_nodes)) ** 2 / 12
        )) AS run_noise,
        CASE
            WHEN run_noise = step_noise THEN 'steps'
            WHEN freedom > 0 THEN 'own_repeats'
            WHEN framework_freedom > 0 THEN 'framework'
            WHEN cluster_freedom > 0 THEN 'cluster'
            WHEN nodes_freedom > 0 THEN 'nodes'
            ELSE 'bundled'
        END AS noise_basis,
        run_noise / sqrt(repeats) AS speed_noise
    FROM pooled
)
SELECT
    origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
    row_number() OVER (
        PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator
        ORDER BY tokens_per_s_per_gpu DESC, layout, run_id
    ) AS rank_in_cell,
    run_id, framework, framework_version, torch_version, nccl_version, cluster, params, gpus_per_node, dp, tp, pp, cp, ep, vpp, zero_stage, mbs, gas, recompute,
    precision, sequence_parallel, pipeline_schedule, layout, variant, options_id, strategy, tokens_per_s_per_gpu, tokens_per_s,
    step_time_s, mfu, mfu_logged, hfu, model_tflops_per_gpu, mem_peak_allocated_bytes, mem_peak_reserved_bytes, dp_replicate,
    repeats, repeat_spread, speed_resolution,
    mean_tokens_per_s_per_gpu,
    array_to_string(list_transform(repeat_speeds, lambda speed: format('{:.6g}', speed)), ' ') AS repeat_speeds,
    run_noise, noise_basis, nodes_freedom::BIGINT AS noise_repeats,
    tokens_per_s_per_gpu * exp(-z_95() * speed_noise) AS low_tokens_per_s_per_gpu,
    tokens_per_s_per_gpu * exp(z_95() * speed_noise) AS high_tokens_per_s_per_gpu,
    speed_noise
FROM doubted
