"""What a report asks beside the pages: the extent of what was tried, what came since a day, what a plan still lacks."""

from __future__ import annotations

from datetime import date

from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.query import Query


def extent(scope: Scope) -> Query:
    """One row: counts, names and ranges of the runs of a scope, duplicates left out.

    `models`, `accelerators` and `frameworks` are sorted lists; `first_at` and `last_at` are NULL where no log has a
    time.
    """
    sql = f"""SELECT count(*) AS runs_tried, count(*) FILTER (status = 'completed') AS runs_completed,
  count(DISTINCT layout) AS layouts, sum(gpu_hours) AS gpu_hours,
  count(*) FILTER (gpu_hours IS NULL) AS runs_without_gpu_hours,
  coalesce(list_sort(list(DISTINCT model) FILTER (model IS NOT NULL)), []) AS models,
  coalesce(list_sort(list(DISTINCT accelerator) FILTER (accelerator IS NOT NULL)), []) AS accelerators,
  coalesce(list_sort(list(DISTINCT framework) FILTER (framework IS NOT NULL)), []) AS frameworks,
  min(num_nodes) AS fewest_nodes, max(num_nodes) AS most_nodes,
  min(seq_len) AS least_seq_len, max(seq_len) AS most_seq_len,
  min(gbs_tokens) AS least_gbs_tokens, max(gbs_tokens) AS most_gbs_tokens,
  min(coalesce(started_at, ended_at)) AS first_at, max(coalesce(ended_at, started_at)) AS last_at
FROM runs
WHERE duplicate_of IS NULL AND {scope.condition}"""
    return Query(sql, scope.params)


def since(scope: Scope, day: date) -> Query:
    """One row: how the runs ended that were still going on, or began, on a day or after it, and what they took.

    `runs_undated` are those of the scope whose logs have no time; they are in none of the other counts.
    """
    sql = f"""WITH dated AS (
  SELECT o.is_failure, o.gpu_hours, coalesce(r.ended_at, r.started_at) AS last_at, r.status
  FROM run_outcomes AS o
  JOIN runs AS r USING (run_id)
  WHERE {_of_outcome(scope)}
)
SELECT count(*) FILTER (last_at >= $day::TIMESTAMP) AS runs_tried,
  count(*) FILTER (last_at >= $day::TIMESTAMP AND status = 'completed') AS runs_completed,
  count(*) FILTER (last_at >= $day::TIMESTAMP AND is_failure) AS runs_failed,
  sum(gpu_hours) FILTER (last_at >= $day::TIMESTAMP) AS gpu_hours,
  sum(gpu_hours) FILTER (last_at >= $day::TIMESTAMP AND is_failure) AS gpu_hours_lost,
  count(*) FILTER (last_at IS NULL) AS runs_undated
FROM dated"""
    return Query(sql, {**scope.params, "day": day.isoformat()})


def _of_outcome(scope: Scope) -> str:
    """`scope.condition` on `run_outcomes AS o`, where `runs` has the same columns."""
    return "o.origin = $origin" if scope.sweep is None else "o.origin = $origin AND o.sweep = $sweep"


def leads_since(scope: Scope, day: date) -> Query:
    """Rows of `lead_history` of the cells that another layout leads since a day, or that have their first leader.

    The lead that counts is the present one; leads in between are left out.
    """
    of_sweep = "true" if scope.sweep is None else "run_id IN (SELECT run_id FROM runs WHERE sweep = $sweep)"
    sql = f"""SELECT model, num_nodes, num_gpus, accelerator, seq_len, gbs_tokens, layout, tokens_per_s_per_gpu,
  layout_before, margin, noise, is_tie, led_from, run_id
FROM lead_history
WHERE origin = $origin AND {of_sweep} AND led_until IS NULL AND led_from >= $day::TIMESTAMP
ORDER BY model, num_nodes, num_gpus, accelerator, seq_len, gbs_tokens"""
    return Query(sql, {**scope.params, "day": day.isoformat()})


def failures_since(scope: Scope, day: date) -> Query:
    """One row per ending and model of the runs that failed on a day or after it, most GPU-hours first."""
    sql = f"""SELECT o.status, r.model, count(*) AS runs_failed, sum(o.gpu_hours) AS gpu_hours_lost,
  any_value(r.status_evidence ORDER BY r.run_id) AS status_evidence
FROM run_outcomes AS o
JOIN runs AS r USING (run_id)
WHERE o.is_failure AND {_of_outcome(scope)} AND coalesce(r.ended_at, r.started_at) >= $day::TIMESTAMP
GROUP BY o.status, r.model
ORDER BY gpu_hours_lost DESC NULLS LAST, runs_failed DESC, o.status, r.model"""
    return Query(sql, {**scope.params, "day": day.isoformat()})


def cell_runs(scope: Scope, *, model: str | None = None, nodes: int | None = None) -> Query:
    """Rows of `runs` of a scope, or of one model or node count in it, that a cell's proposals rest on."""
    given = {name: value for name, value in (("model", model), ("num_nodes", nodes)) if value is not None}
    where = " AND ".join(["duplicate_of IS NULL", scope.condition, *(f"{name} = ${name}" for name in given)])
    return Query(f"SELECT * FROM runs WHERE {where}", {**scope.params, **given})


def open_plans() -> Query:
    """Rows of `plan_status` that no run fills yet, and those that failed and nothing mends."""
    sql = """SELECT plan_id, planned_run_id, plan_outcome, model, num_nodes, layout, status, planned_gpu_hours, why
FROM plan_status
WHERE plan_outcome = 'missing' OR (plan_outcome = 'failed' AND is_mended IS NOT TRUE)
ORDER BY plan_id, position"""
    return Query(sql)
