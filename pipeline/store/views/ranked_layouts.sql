-- Every completed layout of each cell, fastest first. Repeats of one layout are one row: the medians over its runs,
-- and their spread, which limits how far a lead can be trusted. Runs of another version of the framework, torch or
-- NCCL, or on another cluster, are no repeats: what they differ by is no noise. Runs whose logs do not name the version
-- are repeats of each other only. Tokens/s/GPU decides, not MFU: within a cell the model and
-- the card are the same, and tokens/s/GPU depends on no FLOP convention.
-- A cell is one number of accelerators: on a single node 1, 2 and 4 of them are different questions.
-- Runs without a model, node count, sequence length or batch have no cell; an unknown accelerator is a group of its own.
CREATE VIEW ranked_layouts AS
WITH layouts AS (
    SELECT
        origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
        -- what makes a layout: everything that a user can choose
        framework, gpus_per_node, dp, tp, pp, cp, ep, vpp, zero_stage, dp_replicate, mbs, gas,
        recompute, precision, sequence_parallel, pipeline_schedule, layout, variant, o.strategy,
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
)
SELECT
    origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
    row_number() OVER (
        PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator
        ORDER BY tokens_per_s_per_gpu DESC, layout, run_id
    ) AS rank_in_cell,
    run_id, framework, framework_version, torch_version, nccl_version, cluster, params, gpus_per_node, dp, tp, pp, cp, ep, vpp, zero_stage, mbs, gas, recompute,
    precision, sequence_parallel, pipeline_schedule, layout, variant, strategy, tokens_per_s_per_gpu, tokens_per_s,
    step_time_s, mfu, mfu_logged, hfu, model_tflops_per_gpu, mem_peak_allocated_bytes, mem_peak_reserved_bytes, dp_replicate,
    repeats, repeat_spread, speed_resolution
FROM named
