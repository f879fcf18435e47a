-- best: Which layout wins each cell, and how sure is that?
SELECT model, num_nodes, layout, round(100 * mfu, 1) AS mfu_pct,
  round(tokens_per_s_per_gpu) AS tokens_per_s_per_gpu, runner_up_layout,
  round(100 * margin, 1) AS margin_pct, is_tie, round(100 * chance_best) AS chance_best_pct, repeats, origin
FROM best_configs
ORDER BY origin, params, model, num_nodes

-- empty: Which cells have no result, and why?
SELECT model, num_nodes, cell_state, cell_reason, runs_tried,
  round(states_lower_bound_bytes / 2**30, 1) AS states_gib
FROM grid_cells
WHERE cell_state <> 'measured'
ORDER BY origin, params, num_nodes

-- outcomes: How did the runs end, per framework?
SELECT framework, status, count(*) AS runs,
  round(100 * count(*) / sum(count(*)) OVER (PARTITION BY framework), 1) AS share_pct
FROM runs
WHERE duplicate_of IS NULL
GROUP BY framework, status
ORDER BY framework, runs DESC

-- layout_failures: Which tensor and pipeline degrees fail most?
SELECT tp, pp, count(*) AS tries, count(*) FILTER (status = 'completed') AS completed,
  round(100 * avg(CASE WHEN status = 'completed' THEN 0 ELSE 1 END), 1) AS failed_pct
FROM runs
WHERE status <> 'running' AND tp IS NOT NULL AND pp IS NOT NULL AND duplicate_of IS NULL
GROUP BY ALL
HAVING count(*) >= 10
ORDER BY failed_pct DESC, tries DESC

-- scaling: How much MFU is left at the largest node count?
SELECT origin, model, num_nodes, layout, round(100 * mfu, 1) AS mfu_pct,
  baseline_num_nodes, round(100 * scaling_efficiency, 1) AS efficiency_pct
FROM scaling_efficiency
WHERE strategy = 'best'
QUALIFY num_gpus = max(num_gpus) OVER (PARTITION BY origin, model, seq_len, gbs_tokens, accelerator)
ORDER BY origin, params, model

-- memory: Which completed runs were within 10 % of the card's memory?
SELECT runs.model, runs.num_gpus, runs.layout, round(mem_peak_allocated_bytes / 2**30, 1) AS peak_gib,
  round(100 * mem_peak_allocated_bytes / memory_bytes, 1) AS of_card_pct, runs.run_id
FROM runs
JOIN accelerators USING (accelerator)
WHERE status = 'completed' AND mem_peak_allocated_bytes > mem_near_limit() * memory_bytes
ORDER BY of_card_pct DESC

-- cost: What did failed runs cost?
SELECT origin, outcome, count(*) AS runs, round(sum(gpu_hours), 1) AS gpu_hours,
  round(100 * sum(gpu_hours) / sum(sum(gpu_hours)) OVER (PARTITION BY origin), 1) AS share_pct,
  count(*) FILTER (gpu_hours IS NULL) AS runs_of_unknown_cost
FROM run_outcomes
GROUP BY origin, outcome
ORDER BY origin, gpu_hours DESC NULLS LAST

-- settings_that_fail: Which settings fail more often than the rest, beyond chance?
SELECT rates.origin, dimension, value, runs_judged, round(100 * failure_rate, 1) AS failed_pct,
  round(100 * failure_rate_low, 1) AS from_pct, round(100 * failure_rate_high, 1) AS to_pct
FROM failure_rates AS rates
JOIN (SELECT origin, avg(is_failure::INT) AS overall FROM run_outcomes GROUP BY origin) AS whole USING (origin)
WHERE rates.sweep IS NULL AND dimension NOT IN ('sweep', 'day') AND failure_rate_low > overall
ORDER BY rates.origin, failure_rate_low DESC

-- retry: What is worth submitting again?
SELECT model, num_nodes, layout, reason, attempts, round(gpu_hours_lost, 1) AS gpu_hours_lost,
  status_evidence, run_dir
FROM retry_list
ORDER BY gpu_hours_lost DESC NULLS LAST

-- noise: How noisy are repeats of one layout?
SELECT origin, model, num_nodes, layout, framework_version, repeats, round(100 * repeat_spread, 2) AS spread_pct
FROM ranked_layouts
WHERE repeats > 1
ORDER BY repeat_spread DESC

-- stragglers: Which steps took over twice their run's median?
SELECT runs.run_id, runs.model, runs.num_gpus, steps.step, round(steps.step_time_s, 2) AS step_time_s,
  round(steps.step_time_s / runs.step_time_s, 1) AS times_median
FROM steps
JOIN runs USING (run_id)
WHERE steps.step_time_s > 2 * runs.step_time_s
  AND steps.step > runs.first_step + runs.warmup_steps_dropped
ORDER BY times_median DESC

-- evidence: Which evidence of failures is in the logs?
SELECT kind, count(*) AS lines, count(DISTINCT run_id) AS runs, any_value(text) AS example
FROM events
GROUP BY ALL
ORDER BY lines DESC

-- findings: What went wrong in runs besides how they ended?
SELECT kind, runs.run_id, runs.model, runs.layout, runs.status, rank, host, text, events.line_no
FROM events
JOIN runs USING (run_id)
WHERE kind IN ({health_findings})
ORDER BY kind, run_id, line_no

-- audit: Which printed MFU cannot be taken at face value?
SELECT finding, count(*) AS runs, any_value(detail) AS example
FROM mfu_audit
GROUP BY ALL
ORDER BY runs DESC

-- conflicts: Where do a run's files disagree about its settings?
SELECT used.run_id, used.name, used.value AS used_value, used.setting_source AS used_source,
  other.value AS other_value, other.setting_source AS other_source
FROM settings AS used
JOIN settings AS other USING (run_id, name)
WHERE used.is_used AND NOT other.is_used AND lower(used.value) <> lower(other.value)
ORDER BY used.name, used.run_id

-- rejects: Which lines could not be read?
SELECT reason, count(*) AS lines, count(DISTINCT file) AS files, any_value(raw) AS example
FROM rejects
GROUP BY ALL
ORDER BY lines DESC
