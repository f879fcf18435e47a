"""Two sweeps against each other, on the layouts that both have completed."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

MOST_SWEEPS = 400
"""In a menu."""

_KEY = """concat_ws('|', model, num_gpus, seq_len, gbs_tokens, list_transform(
      [dp, tp, pp, cp, ep, vpp, mbs, gas, zero_stage, dp_replicate], lambda one: coalesce(one::VARCHAR, '?'))::VARCHAR,
      coalesce(recompute, '?'))"""
"""What makes two runs the same work and layout; software, hardware and precision are what the sweeps differ in."""


def sweeps() -> Query:
    """Sweeps with ranked runs: origin, name, and how many layouts they have completed; own ones first.

    At most MOST_SWEEPS, those with most layouts.
    """
    sql = f"""WITH done AS (
  SELECT origin, sweep, {_KEY} AS work
  FROM runs
  JOIN (SELECT run_id, is_ranked FROM run_outcomes) USING (run_id)
  WHERE is_ranked AND sweep IS NOT NULL
)
SELECT origin, sweep, count(DISTINCT work) AS layouts
FROM done
GROUP BY origin, sweep
ORDER BY origin = 'published', origin = 'simulated', layouts DESC, sweep
LIMIT {MOST_SWEEPS}"""
    return Query(sql)


def pairs(first: tuple[str, str], second: tuple[str, str]) -> Query:
    """One row per layout that either sweep, (origin, name), has completed: medians of each, NULL where it has none.

    `ratio` is the second's tokens/s/GPU over the first's; `run_id` and `other_run_id` are their fastest runs of it.
    """
    sql = f"""WITH done AS (
  SELECT {_KEY} AS work, model, num_nodes, num_gpus, layout, run_id, mfu, tokens_per_s_per_gpu,
    r.origin = $origin AND r.sweep = $sweep AS is_first
  FROM runs AS r
  JOIN (SELECT run_id, is_ranked FROM run_outcomes) USING (run_id)
  WHERE is_ranked AND (r.origin, r.sweep) IN (($origin, $sweep), ($other_origin, $other_sweep))
),
matched AS (
  SELECT any_value(model) AS model, any_value(num_nodes) AS num_nodes, any_value(num_gpus) AS num_gpus,
    any_value(layout) AS layout,
    median(tokens_per_s_per_gpu) FILTER (is_first) AS speed,
    median(tokens_per_s_per_gpu) FILTER (NOT is_first) AS other_speed,
    median(mfu) FILTER (is_first) AS mfu, median(mfu) FILTER (NOT is_first) AS other_mfu,
    count(*) FILTER (is_first) AS repeats, count(*) FILTER (NOT is_first) AS other_repeats,
    arg_max(run_id, tokens_per_s_per_gpu) FILTER (is_first) AS run_id,
    arg_max(run_id, tokens_per_s_per_gpu) FILTER (NOT is_first) AS other_run_id
  FROM done
  GROUP BY work
)
SELECT model, num_nodes, num_gpus, layout, speed AS tokens_per_s_per_gpu, other_speed AS other_tokens_per_s_per_gpu,
  other_speed / speed AS ratio, mfu, other_mfu, repeats, other_repeats, run_id, other_run_id
FROM matched
ORDER BY ratio NULLS LAST, model, num_gpus, layout"""
    params = {"origin": first[0], "sweep": first[1], "other_origin": second[0], "other_sweep": second[1]}
    return Query(sql, params)
