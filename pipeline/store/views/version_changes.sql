-- What became of a layout's speed from one version of its software to the next on the same cluster: `change` counts where
-- it exceeds 1.96 standard deviations of the difference, else it is noise. Versions follow each other in the order in which
-- they were first run; without a time there is no order, and no row.
CREATE VIEW version_changes AS
WITH seen AS (
    SELECT l.*, coalesce(r.started_at, r.ended_at) AS began
    FROM ranked_layouts AS l
    JOIN (SELECT run_id, started_at, ended_at FROM runs) AS r USING (run_id)
    WHERE l.layout IS NOT NULL AND coalesce(r.started_at, r.ended_at) IS NOT NULL
),
compared AS (
    SELECT
        *,
        lag(run_id) OVER alike AS run_id_before,
        lag(began) OVER alike AS began_before,
        lag(framework_version) OVER alike AS framework_version_before,
        lag(torch_version) OVER alike AS torch_version_before,
        lag(nccl_version) OVER alike AS nccl_version_before,
        lag(tokens_per_s_per_gpu) OVER alike AS before_tokens_per_s_per_gpu,
        lag(speed_noise) OVER alike AS noise_before,
        lag(repeats) OVER alike AS repeats_before
    FROM seen
    WINDOW alike AS (
        PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, framework, cluster, layout,
            variant, options_id, recompute, precision, sequence_parallel, pipeline_schedule, dp_replicate, gpus_per_node
        ORDER BY began, run_id
    )
)
SELECT
    origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, framework, cluster, layout,
    run_id, began AS measured_at, framework_version, torch_version, nccl_version, tokens_per_s_per_gpu, repeats,
    run_id_before, began_before AS measured_at_before, framework_version_before, torch_version_before, nccl_version_before,
    before_tokens_per_s_per_gpu, repeats_before,
    lead_over(tokens_per_s_per_gpu, before_tokens_per_s_per_gpu) AS change,
    lead_noise(speed_noise, noise_before) AS noise,
    CASE
        WHEN abs(ln(tokens_per_s_per_gpu / before_tokens_per_s_per_gpu)) <= z_95() * sqrt(speed_noise ** 2 + noise_before ** 2)
            THEN 'noise'
        WHEN tokens_per_s_per_gpu < before_tokens_per_s_per_gpu THEN 'slower'
        ELSE 'faster'
    END AS change_verdict
FROM compared
WHERE run_id_before IS NOT NULL
