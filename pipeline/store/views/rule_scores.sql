-- How each document's rules did on the ranked layouts of each origin, as `sweepscope rules` has it: a rule was tested by
-- cells with at least five layouts of which some follow it and some do not, and held where one that follows is within
-- 2 % of the fastest. Publishing puts the rules of data/rules/rules.toml in place of the two marks.
CREATE VIEW rule_scores AS
WITH rules(rule_id, rule_set, document, section, recipe_step, says) AS (
    VALUES /* rules */
),
asked AS MATERIALIZED (
    SELECT
        layout.origin, layout.model, layout.num_nodes, layout.num_gpus, layout.seq_len, layout.gbs_tokens,
        layout.accelerator, layout.run_id, layout.tokens_per_s_per_gpu, layout.params::DOUBLE AS params,
        CASE
            WHEN link.usual_gpus_per_domain > link.usual_gpus_per_node THEN link.usual_gpus_per_domain
            ELSE coalesce(layout.gpus_per_node, link.usual_gpus_per_node)
        END AS gpus_per_node, layout.dp, layout.tp, layout.pp,
        coalesce(layout.cp, 1) AS cp, coalesce(layout.ep, 1) AS ep, coalesce(layout.vpp, 1) AS vpp, layout.mbs,
        layout.gas, layout.zero_stage, coalesce(layout.recompute::VARCHAR, 'none') AS recompute,
        coalesce(run.num_experts > 1, false) AS is_moe,
        coalesce(
            link.accelerator IS NOT NULL
            AND state_bytes_per_param(layout.framework) * layout.params / layout.num_gpus
                > gpu_poor_share() * card.memory_bytes,
            false
        ) AS is_gpu_poor
    FROM ranked_layouts AS layout
    JOIN runs AS run USING (run_id)
    LEFT JOIN accelerators AS card ON card.accelerator = layout.accelerator
    LEFT JOIN accelerator_links AS link ON link.accelerator = layout.accelerator
    WHERE layout.tokens_per_s_per_gpu > 0
),
advised AS (
    /* layouts */
),
cells AS (
    SELECT
        rule_id, origin, count(*) AS layouts, count(*) FILTER (follows) AS advised,
        first(follows ORDER BY tokens_per_s_per_gpu DESC, run_id) AS is_winner,
        1 - max(tokens_per_s_per_gpu) FILTER (follows) / max(tokens_per_s_per_gpu) AS regret,
        1 - median(tokens_per_s_per_gpu) FILTER (follows) / max(tokens_per_s_per_gpu) AS typical_regret,
        1 - median(tokens_per_s_per_gpu) FILTER (NOT follows) / max(tokens_per_s_per_gpu) AS other_regret,
        count(*) >= rule_layouts() AND count(*) FILTER (follows) BETWEEN 1 AND count(*) - 1 AS is_tested
    FROM advised
    GROUP BY rule_id, origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator
),
counted AS (
    SELECT
        rule_id, origin, count(*) AS rule_cells, count(*) FILTER (is_tested) AS cells_tested,
        count(*) FILTER (is_tested AND regret <= rule_near()) AS cells_held,
        avg((regret <= rule_near())::INTEGER) FILTER (is_tested) AS hit_rate,
        avg(advised / layouts) FILTER (is_tested) AS selects,
        avg(is_winner::INTEGER) FILTER (is_tested) AS winner_rate,
        avg(regret) FILTER (is_tested) AS regret,
        avg(typical_regret) FILTER (is_tested) AS typical_regret,
        avg(other_regret) FILTER (is_tested) AS other_regret
    FROM cells
    GROUP BY rule_id, origin
)
SELECT
    rules.rule_id, counted.origin, rules.rule_set, rules.document, rules.section, rules.recipe_step, rules.says,
    counted.rule_cells, counted.cells_tested, counted.cells_held, counted.hit_rate, counted.selects,
    counted.winner_rate, counted.regret, counted.typical_regret, counted.other_regret
FROM rules
JOIN counted USING (rule_id);
