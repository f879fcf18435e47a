"""Estimates beside what was measured, for one origin and one sweep of it or all."""

from __future__ import annotations

from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.query import ESTIMATED_MFU, Query
from sweepscope.schemas.thresholds import PENALISED_RATIO

RATIO_COLUMNS = {"estimate": "time_ratio", "hardware": "hardware_time_ratio", "expected": "expected_time_ratio"}
"""Columns of `estimator_residuals` with measured over estimated step time, by kind of estimate: from first principles,
of the hardware alone (without launch stalls), and with the learned penalty."""

_ERROR = "median(abs(1 / {0} - 1))"  # of the estimate, as a share of the measured value
_SIZES = "'below 2B', '2B to 5B', '5B to 20B', '20B to 100B', '100B and more'"


def origins() -> Query:
    """One row per origin: its runs, and how many can be set beside their estimate."""
    sql = """SELECT estimates.origin, count(*) AS runs, count(time_ratio) AS compared
FROM estimates
LEFT JOIN (SELECT run_id, time_ratio FROM estimator_residuals) USING (run_id)
GROUP BY estimates.origin
ORDER BY estimates.origin"""
    return Query(sql)


def sweeps(origin: str) -> Query:
    """One row per sweep of an origin that has a run beside its estimate, most first."""
    sql = """SELECT sweep, count(*) AS runs
FROM estimator_residuals
WHERE origin = $origin AND sweep IS NOT NULL
GROUP BY sweep
ORDER BY runs DESC, sweep"""
    return Query(sql, {"origin": origin})


def totals(scope: Scope) -> Query:
    """One row: runs beside their estimate, those that are penalised, and the median errors of time and memory."""
    sql = f"""SELECT count(*) AS runs, count(*) FILTER (is_penalised) AS penalised,
  {_ERROR.format("time_ratio")} AS time_error,
  {_ERROR.format("time_ratio")} FILTER (NOT is_penalised) AS healthy_time_error,
  median(time_ratio) FILTER (is_penalised) AS penalised_ratio,
  count(mem_ratio) AS mem_runs, {_ERROR.format("mem_ratio")} AS mem_error
FROM estimator_residuals
WHERE {scope.condition}"""
    return Query(sql, scope.params)


def runs(scope: Scope) -> Query:
    """Rows of `estimator_residuals`, best MFU first, with `est_mfu` on the basis of the run's own `mfu`."""
    sql = f"""SELECT * REPLACE ({ESTIMATED_MFU} AS est_mfu)
FROM estimator_residuals
WHERE {scope.condition}
ORDER BY mfu DESC NULLS LAST, time_ratio, run_id"""
    return Query(sql, scope.params)


def patterns(scope: Scope, against: str = "estimate") -> Query:
    """One row per pattern: its runs, and the median, 10th and 90th percentile of measured over estimated step time.

    `against`: which estimate, a key of RATIO_COLUMNS.
    """
    ratio = RATIO_COLUMNS[against]
    sql = f"""SELECT pattern, count(*) AS runs, count(*) FILTER ({ratio} > {PENALISED_RATIO}) AS penalised,
  median({ratio}) AS time_ratio, quantile_cont({ratio}, 0.1) AS time_ratio_p10,
  quantile_cont({ratio}, 0.9) AS time_ratio_p90
FROM estimator_residuals
WHERE {scope.condition} AND {ratio} IS NOT NULL
GROUP BY pattern
ORDER BY time_ratio DESC, pattern"""
    return Query(sql, scope.params)


def accuracy(scope: Scope) -> Query:
    """One row per framework, accelerator and size of model: how many runs, and how far from their estimates."""
    sql = f"""SELECT framework, accelerator, [{_SIZES}][size_order] AS model_size,
  count(*) AS runs, median(time_ratio) AS time_ratio, quantile_cont(time_ratio, 0.1) AS time_ratio_p10,
  quantile_cont(time_ratio, 0.9) AS time_ratio_p90, {_ERROR.format("time_ratio")} AS time_error,
  count(*) FILTER (is_penalised) AS penalised,
  count(mem_ratio) AS mem_runs, median(mem_ratio) AS mem_ratio, {_ERROR.format("mem_ratio")} AS mem_error
FROM estimator_residuals
JOIN (
  SELECT run_id, CASE WHEN params < 2e9 THEN 1 WHEN params < 5e9 THEN 2 WHEN params < 20e9 THEN 3
    WHEN params < 100e9 THEN 4
    WHEN params IS NOT NULL THEN 5 END AS size_order
  FROM runs
) USING (run_id)
WHERE {scope.condition}
GROUP BY framework, accelerator, size_order
ORDER BY framework, accelerator, size_order"""
    return Query(sql, scope.params)


def breakdown(run_id: str) -> Query:
    """The estimate of one run with its parts, beside what was measured; `est_mfu` counts the FLOPs of the estimate.

    No row when the two cannot be compared.
    """
    sql = """SELECT estimates.*, residual.* EXCLUDE (run_id, origin, est_profile, est_step_time_s, est_mfu,
  est_mem_bytes, source_path), runs.mfu_basis
FROM estimates
JOIN estimator_residuals AS residual USING (run_id)
JOIN runs USING (run_id)
WHERE run_id = $run_id"""
    return Query(sql, {"run_id": run_id})


def account(scope: Scope) -> Query:
    """One row per fate of a run and its reason: compared, refused by the estimator, or without a usable measurement.

    Rows that repeat another run are left out, as on the other pages.
    """
    sql = f"""SELECT fate, reason, count(*) AS runs
FROM (
  SELECT runs.origin, runs.sweep,
    CASE WHEN est_status <> 'ok' THEN 'not estimated' WHEN residual.run_id IS NULL THEN 'not measured'
      ELSE 'compared' END AS fate,
    CASE WHEN est_status <> 'ok' THEN est_status
      WHEN residual.run_id IS NOT NULL THEN NULL
      WHEN status <> 'completed' THEN 'did not complete'
      WHEN quarantine_reason IS NOT NULL THEN 'quarantined'
      ELSE 'no step time' END AS reason
  FROM estimates
  JOIN runs ON runs.run_id = estimates.run_id AND duplicate_of IS NULL
  LEFT JOIN estimator_residuals AS residual ON residual.run_id = estimates.run_id
)
WHERE {scope.condition}
GROUP BY fate, reason
ORDER BY runs DESC, reason"""
    return Query(sql, scope.params)
