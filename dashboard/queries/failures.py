"""How runs end, what that costs and what to submit again, for one origin and one sweep of it or all."""

from __future__ import annotations

from dataclasses import dataclass

from sweepscope.dashboard.queries.query import Query

PATTERNS = ("strategy", "tp", "pp", "cp", "ep", "zero_stage", "mbs", "gas", "recompute", "precision")
"""Dimensions that a user chooses, in the order in which they are named."""

REASONS_SHOWN = 8


@dataclass(frozen=True)
class Scope:
    """Whose runs: an origin, and one of its sweeps (None: all of them)."""

    origin: str
    sweep: str | None = None

    @property
    def condition(self) -> str:
        """Condition on `origin` and `sweep` of a view with a row per run or sweep."""
        return "origin = $origin" if self.sweep is None else "origin = $origin AND sweep = $sweep"

    @property
    def params(self) -> dict[str, object]:
        """Parameters of `condition`."""
        return {"origin": self.origin} if self.sweep is None else {"origin": self.origin, "sweep": self.sweep}


def origins() -> Query:
    """One row per origin: its runs, the failed ones among them."""
    sql = """SELECT origin, count(*) AS runs, count(*) FILTER (is_failure) AS failed
FROM run_outcomes
GROUP BY origin
ORDER BY origin"""
    return Query(sql)


def sweeps(origin: str) -> Query:
    """One row per sweep of an origin with its number of runs, most first."""
    sql = """SELECT sweep, runs_tried
FROM sweep_cost
WHERE origin = $origin AND sweep IS NOT NULL
ORDER BY runs_tried DESC, sweep"""
    return Query(sql, {"origin": origin})


def totals(scope: Scope) -> Query:
    """One row: runs by ending, the failure rate with its interval, GPU-hours and of how many runs they are unknown.

    `runs_cut_off` are failures of which one knows no more than that the log stops. `usd` and `usd_lost` are at the
    prices of accelerators, over `gpu_hours_priced` of the hours.
    """
    sql = f"""SELECT count(*) AS runs_tried, count(is_failure) AS runs_judged,
  count(*) FILTER (is_failure) AS runs_failed, count(*) FILTER (is_failure AND status = 'truncated') AS runs_cut_off,
  count(*) FILTER (outcome = 'running') AS runs_running,
  wilson_low(runs_failed, runs_judged) AS failure_rate_low, wilson_high(runs_failed, runs_judged) AS failure_rate_high,
  count(*) FILTER (outcome = 'held') AS runs_held, sum(gpu_hours_held) AS gpu_hours_held,
  sum(gpu_hours) AS gpu_hours, spent_on(gpu_hours, is_failure) AS gpu_hours_lost, sum(gpu_hours_kept) AS gpu_hours_kept,
  count(*) FILTER (gpu_hours IS NULL) AS runs_without_gpu_hours,
  count(*) FILTER (is_failure AND gpu_hours IS NULL) AS failures_without_gpu_hours,
  sum(run_usd) AS usd, spent_on(run_usd, is_failure AND run_usd IS NOT NULL) AS usd_lost,
  sum(gpu_hours) FILTER (run_usd IS NOT NULL) AS gpu_hours_priced
FROM run_outcomes
LEFT JOIN (
  SELECT run_id, usd_per_gpu_hour * o.gpu_hours AS run_usd
  FROM run_outcomes AS o
  JOIN runs USING (run_id)
  JOIN prices USING (accelerator)
) USING (run_id)
WHERE {scope.condition}"""
    return Query(sql, scope.params)


def endings(scope: Scope) -> Query:
    """One row per class of ending: its runs and their GPU-hours (NULL: unknown of all).

    `runs_host_oom` of the crashes ran out of host memory. Those of runs that held their GPUs after the end are hours
    of `completed` until then, and of `held` from then on.
    """
    sql = f"""WITH parts AS (
  SELECT outcome, status, run_id, CASE WHEN outcome = 'held' THEN gpu_hours_held ELSE gpu_hours END AS hours
  FROM run_outcomes
  WHERE {scope.condition}
  UNION ALL
  SELECT 'completed', NULL, NULL, gpu_hours - gpu_hours_held
  FROM run_outcomes
  WHERE outcome = 'held' AND {scope.condition}
)
SELECT outcome, count(run_id) AS runs, sum(hours) AS gpu_hours,
  count(run_id) FILTER (hours IS NULL) AS runs_without_gpu_hours,
  count(run_id) FILTER (status = 'host_oom') AS runs_host_oom
FROM parts
GROUP BY outcome"""
    return Query(sql, scope.params)


def rates(scope: Scope, *dimensions: str) -> Query:
    """Rows of `failure_rates` for some dimensions, numbers in order."""
    sql = """SELECT *
FROM failure_rates
WHERE origin = $origin
  AND sweep IS NOT DISTINCT FROM $sweep
  AND list_contains($dimensions, dimension)
ORDER BY dimension, try_cast(value AS DOUBLE), value"""
    return Query(sql, {"origin": scope.origin, "sweep": scope.sweep, "dimensions": list(dimensions)})


def costs(scope: Scope) -> Query:
    """Rows of `sweep_cost`, the dearest sweep first."""
    sql = f"""SELECT *
FROM sweep_cost
WHERE {scope.condition}
ORDER BY gpu_hours DESC NULLS LAST, runs_tried DESC, sweep"""
    return Query(sql, scope.params)


def search(scope: Scope) -> Query:
    """One row: GPU-hours until the winners had run, those of the same cells in all, and how many cells that are."""
    sql = f"""SELECT sum(gpu_hours_until_winner) AS gpu_hours_until_winner,
  sum(gpu_hours_of_cells_in_order) AS gpu_hours_of_cells_in_order,
  sum(cells_in_order)::BIGINT AS cells_in_order, sum(cells_answered)::BIGINT AS cells_answered
FROM sweep_cost
WHERE {scope.condition}"""
    return Query(sql, scope.params)


def reasons(scope: Scope) -> Query:
    """Wordings of the deciding lines of failures, digits taken out: one row per wording, with its dearest run."""
    sql = f"""SELECT status, failure_wording(status_evidence, others IS NOT NULL) AS wording, count(*) AS runs,
  arg_max(run_id, (coalesce(outcomes.gpu_hours, -1), run_id)) AS run_id,
  arg_max(coalesce(others, status_evidence), (coalesce(outcomes.gpu_hours, -1), run_id)) AS example
FROM run_outcomes AS outcomes
JOIN (SELECT run_id, status_evidence FROM runs) USING (run_id)
LEFT JOIN (
  SELECT run_id, any_value(text) AS others FROM events WHERE kind = 'oom_by_others' GROUP BY run_id
) USING (run_id)
WHERE {scope.condition} AND is_failure
GROUP BY status, wording
ORDER BY runs DESC, status, wording
LIMIT {REASONS_SHOWN}"""
    return Query(sql, scope.params)


def retries(scope: Scope) -> Query:
    """Rows of `retry_list`, the dearest loss first; last those of which neither model nor layout is known."""
    sql = f"""SELECT *
FROM retry_list
WHERE {scope.condition}
ORDER BY model IS NULL AND layout IS NULL, gpu_hours_lost DESC NULLS LAST, model, num_nodes, layout"""
    return Query(sql, scope.params)


def stretched(scope: Scope) -> Query:
    """Rows of `stretched_runs`, the most GPU-hours beyond the usual first."""
    sql = f"""SELECT *
FROM stretched_runs
WHERE {scope.condition}
ORDER BY excess_gpu_hours DESC, run_id"""
    return Query(sql, scope.params)


def idle(scope: Scope) -> Query:
    """One row per run that held GPUs without training, or whose processes lingered; the most GPU-hours first."""
    sql = f"""WITH lingering AS (
  SELECT run_id, bool_or(kind = 'not_ending') AS lingering, bool_or(kind = 'gpu_busy') AS is_gpu_busy
  FROM events
  WHERE kind IN ('not_ending', 'gpu_busy')
  GROUP BY run_id
)
SELECT run_id, model, layout, outcomes.status, gpu_hours_held, gpu_hours_idle, lingering, is_gpu_busy, source_path
FROM run_outcomes AS outcomes
JOIN (SELECT run_id, model, layout, source_path FROM runs) USING (run_id)
LEFT JOIN lingering USING (run_id)
WHERE {scope.condition} AND (gpu_hours_idle > 0 OR lingering OR is_gpu_busy)
ORDER BY gpu_hours_idle DESC NULLS LAST, run_id"""
    return Query(sql, scope.params)


def cut_short(scope: Scope) -> Query:
    """One row per configuration that hit the time limit and neither completed nor is in `retry_list`: its furthest run.

    `needed_s` is what all planned steps would take at the pace of those that were done; NULL where that is unknown.
    """
    sql = f"""WITH tries AS (
  SELECT outcomes.*, model, num_nodes, layout, last_step, steps_planned, source_path,
    CASE WHEN step_basis IN ('step', 'epoch') AND last_step > 0
      THEN outcomes.duration_s * steps_planned / last_step END AS needed_s
  FROM run_outcomes AS outcomes
  JOIN (
    SELECT run_id, model, num_nodes, layout, last_step, steps_planned, step_basis, source_path FROM runs
  ) USING (run_id)
  WHERE {scope.condition}
)
SELECT run_id, model, num_nodes, layout, last_step, steps_planned, duration_s, needed_s, source_path
FROM tries AS late
WHERE status = 'timeout'
  AND run_id NOT IN (SELECT run_id FROM retry_list)
  AND NOT EXISTS (
    SELECT 1 FROM tries AS other
    WHERE other.configuration_id = late.configuration_id AND other.origin = late.origin
      AND other.sweep IS NOT DISTINCT FROM late.sweep AND other.status IN ('completed', 'running')
  )
QUALIFY row_number() OVER (
  PARTITION BY origin, sweep, configuration_id ORDER BY last_step DESC NULLS LAST, run_id
) = 1
ORDER BY model, num_nodes, layout, run_id"""
    return Query(sql, scope.params)
