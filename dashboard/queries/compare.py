"""Several runs side by side: rows, settings, steps, estimates, and how sure a difference between two of them is."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.implementation import IMPLEMENTATION
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.queries.run import bucketed_steps

MAX_POINTS = 240
"""Per run: twenty curves lie over each other."""

_RANKED_BY = (
    *("origin", "model", "num_nodes", "num_gpus", "seq_len", "gbs_tokens", "accelerator", "layout", "variant"),
    *("recompute", "precision", "sequence_parallel", "pipeline_schedule", *IMPLEMENTATION),
)
"""What two runs share that one row of `ranked_layouts` counts as repeats."""
_SAME_SOFTWARE = "\n    AND ".join(f"other.{name} IS NOT DISTINCT FROM this.{name}" for name in IMPLEMENTATION)
_SAME_LAYOUT = "\n    AND ".join(
    f"other.{name} IS NOT DISTINCT FROM this.{name}"
    for name in ("model", "seq_len", "gbs_tokens", "num_gpus", "dp", "tp", "pp", "cp", "ep", "mbs", "gas", "zero_stage")
)


def runs(run_ids: Sequence[str]) -> Query:
    """Their rows of `runs` with the card's memory, what their publication states, and GPU-hours lost in idleness."""
    sql = """SELECT runs.*, accelerators.memory_bytes, published.comparability, published.source_title,
  published.source_url, published.table_or_figure, published.extra,
  usd_per_m_tokens_of(prices.usd_per_gpu_hour, runs.tokens_per_s_per_gpu) AS usd_per_m_tokens
FROM runs
LEFT JOIN prices USING (accelerator)
LEFT JOIN accelerators USING (accelerator)
LEFT JOIN (
  SELECT run_id, comparability, source_title, source_url, table_or_figure, extra FROM published_runs
) AS published USING (run_id)
WHERE list_contains($run_ids, run_id)
ORDER BY list_position($run_ids, run_id)"""
    return Query(sql, {"run_ids": list(run_ids)})


def settings(run_ids: Sequence[str]) -> Query:
    """One row per run and setting: the value in use, or where none is, that of the first source."""
    sql = """SELECT run_id, name, first(value ORDER BY is_used DESC, setting_source) AS value
FROM settings
WHERE list_contains($run_ids, run_id)
GROUP BY run_id, name
ORDER BY name, list_position($run_ids, run_id)"""
    return Query(sql, {"run_ids": list(run_ids)})


def arguments(run_ids: Sequence[str]) -> Query:
    """One row per run and argument, under its framework's own names."""
    sql = """SELECT run_id, name, value
FROM arguments
WHERE list_contains($run_ids, run_id)
ORDER BY name, list_position($run_ids, run_id)"""
    return Query(sql, {"run_ids": list(run_ids)})


def steps(run_ids: Sequence[str]) -> Query:
    """Their steps as `queries.run.steps` has them, with `run_id`; at most about MAX_POINTS of each."""
    return Query(bucketed_steps("list_contains($run_ids, run_id)", MAX_POINTS), {"run_ids": list(run_ids)})


def estimates(run_ids: Sequence[str]) -> Query:
    """Their estimates, beside what was measured; no row of a run that could not be estimated."""
    sql = """SELECT estimates.*, runs.step_time_s, runs.tokens_per_s_per_gpu, runs.mfu, runs.num_gpus, runs.gbs_tokens,
  runs.model, runs.layout, runs.accelerator, runs.status
FROM estimates
JOIN runs USING (run_id)
WHERE list_contains($run_ids, run_id) AND est_status = 'ok'
ORDER BY list_position($run_ids, run_id)"""
    return Query(sql, {"run_ids": list(run_ids)})


def not_estimated(run_ids: Sequence[str]) -> Query:
    """Why some of them have no estimate, one row each."""
    sql = """SELECT run_id, est_status
FROM estimates
WHERE list_contains($run_ids, run_id) AND est_status <> 'ok'"""
    return Query(sql, {"run_ids": list(run_ids)})


def certainty(first: str, second: str) -> Query:
    """One row on two runs: by how much they differ by chance, and the chance that the first is the faster.

    `noise` is in the unit of a lead. A run that stands for the repeats of its layout is as sure as their median.
    `repeats` and `other_repeats` count the runs of each layout, `median` and `other_median` are their throughputs in
    tokens/s/GPU, as rankings have them; `is_same` is true where that is one layout.
    """
    same = "\n    AND ".join(f"layouts.{name} IS NOT DISTINCT FROM runs.{name}" for name in _RANKED_BY)
    sql = f"""WITH doubted AS (
  SELECT runs.run_id, runs.tokens_per_s_per_gpu AS speed, layouts.run_id AS stands_for_it,
    coalesce(layouts.repeats, 1) AS repeats, layouts.tokens_per_s_per_gpu AS median,
    coalesce(
      CASE WHEN layouts.run_id = runs.run_id THEN layouts.speed_noise ELSE layouts.run_noise END,
      noise_of_nodes(runs.num_nodes)
    ) AS noise
  FROM runs
  LEFT JOIN ranked_layouts AS layouts ON {same}
  WHERE runs.run_id IN ($first, $second) AND runs.tokens_per_s_per_gpu IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY runs.run_id ORDER BY layouts.run_id = runs.run_id DESC, layouts.run_id) = 1
)
SELECT one.repeats, two.repeats AS other_repeats, one.median, two.median AS other_median,
  coalesce(one.stands_for_it = two.stands_for_it, false) AS is_same,
  lead_noise(one.noise, two.noise) AS noise,
  chance_of_first([one.speed, two.speed], [one.noise, two.noise]) AS chance
FROM doubted AS one, doubted AS two
WHERE one.run_id = $first AND two.run_id = $second"""
    return Query(sql, {"first": first, "second": second})


def elsewhere(run_id: str) -> Query:
    """The fastest run of the same configuration for each other framework, version, cluster and accelerator."""
    sql = f"""SELECT other.run_id, {", ".join(f"other.{name}" for name in IMPLEMENTATION)}, other.accelerator,
  other.tokens_per_s_per_gpu
FROM runs AS this
JOIN runs AS other ON {_SAME_LAYOUT}
  AND other.run_id <> this.run_id AND other.duplicate_of IS NULL AND other.tokens_per_s_per_gpu IS NOT NULL
  AND other.origin = this.origin
WHERE this.run_id = $run_id AND this.layout IS NOT NULL AND this.model IS NOT NULL
  AND NOT ({_SAME_SOFTWARE} AND other.accelerator IS NOT DISTINCT FROM this.accelerator)
QUALIFY row_number() OVER (
  PARTITION BY {", ".join(f"other.{name}" for name in IMPLEMENTATION)}, other.accelerator
  ORDER BY other.tokens_per_s_per_gpu DESC, other.run_id
) = 1
ORDER BY other.tokens_per_s_per_gpu DESC, other.run_id"""
    return Query(sql, {"run_id": run_id})


def offered(most: int) -> Query:
    """Runs to add to a comparison, own ones first, fast ones before slow ones, at most so many."""
    sql = """SELECT run_id, origin, model, num_gpus, accelerator, layout, framework, status, mfu, tokens_per_s_per_gpu
FROM runs
WHERE duplicate_of IS NULL
ORDER BY list_position(['measured', 'published', 'simulated'], origin), quarantine_reason IS NOT NULL,
  mfu DESC NULLS LAST, tokens_per_s_per_gpu DESC NULLS LAST, run_id
LIMIT $most"""
    return Query(sql, {"most": most})


def suggestions() -> Query:
    """Cells with a runner-up, largest first: pairs to begin with, own ones before published ones."""
    sql = """SELECT origin, model, num_nodes, num_gpus, accelerator, gbs_tokens, run_id, layout, runner_up_run_id,
  runner_up_layout
FROM best_configs
WHERE runner_up_run_id IS NOT NULL
ORDER BY list_position(['measured', 'published', 'simulated'], origin), runs_tried DESC, model, num_gpus
LIMIT 5"""
    return Query(sql)
