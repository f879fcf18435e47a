-- Which layout led a cell, and when: one row per time at which a run was faster than all before it and its layout, or what
-- ran it, was another than the leader's. Only runs whose start (or end) is known have a place in time. A lead is taken
-- run by run, so a lucky run may take it; `is_tie` says where chance explains as much.
CREATE VIEW lead_history AS
WITH noises AS (
    SELECT origin, num_nodes, cluster, framework, median(run_noise) AS run_noise
    FROM ranked_layouts
    GROUP BY ALL
),
timed AS (
    SELECT
        r.*, coalesce(r.started_at, r.ended_at) AS began, n.run_noise,
        md5(concat_ws('|', o.configuration_id, coalesce(r.framework_version, '?'), coalesce(r.torch_version, '?'),
            coalesce(r.nccl_version, '?'), coalesce(r.cluster, '?'))) AS leader
    FROM runs AS r
    JOIN (SELECT run_id, configuration_id FROM run_outcomes WHERE is_ranked) AS o USING (run_id)
    LEFT JOIN noises AS n
        ON n.origin = r.origin AND n.num_nodes = r.num_nodes AND n.cluster IS NOT DISTINCT FROM r.cluster
        AND n.framework IS NOT DISTINCT FROM r.framework
    WHERE coalesce(r.started_at, r.ended_at) IS NOT NULL
),
records AS (
    SELECT *
    FROM timed
    QUALIFY tokens_per_s_per_gpu > coalesce(max(tokens_per_s_per_gpu) OVER (
        PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator ORDER BY began, run_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0)
),
compared AS (
    SELECT
        *,
        lag(leader) OVER cell AS leader_before,
        lag(run_id) OVER cell AS run_id_before,
        lag(layout) OVER cell AS layout_before,
        lag(tokens_per_s_per_gpu) OVER cell AS speed_before,
        lag(run_noise) OVER cell AS noise_before
    FROM records
    WINDOW cell AS (
        PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator ORDER BY began, run_id
    )
),
flips AS (SELECT * FROM compared WHERE leader IS DISTINCT FROM leader_before)
SELECT
    origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
    row_number() OVER cell AS flip_no,
    began AS led_from, lead(began) OVER cell AS led_until, run_id, framework, framework_version, torch_version, nccl_version,
    cluster, layout, tokens_per_s_per_gpu, run_id_before, layout_before,
    lead_over(tokens_per_s_per_gpu, speed_before) AS margin,
    CASE WHEN run_id_before IS NOT NULL THEN lead_noise(run_noise, noise_before) END AS noise,
    is_tied(margin, noise) AS is_tie
FROM flips
WINDOW cell AS (
    PARTITION BY origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator ORDER BY began, run_id
)
