"""Plans of runs: how far each is, its runs beside what was predicted of them, and the cells of a grid they wait in."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.selection.filters import SLICE
from sweepscope.dashboard.selection.slices import Slice


def plans() -> Query:
    """One row per plan, the newest first, with the number of its runs by outcome.

    A failed run that a later one of the plan mends counts as mended, not as failed.
    """
    sql = """WITH made AS (SELECT plan_id, max(created_at) AS created_at FROM planned_runs GROUP BY plan_id)
SELECT plan_id, any_value(purpose) AS purpose, any_value(created_at) AS created_at,
  string_agg(DISTINCT model, ', ' ORDER BY model) AS model, count(*) AS runs_planned,
  count(*) FILTER (plan_outcome = 'completed') AS runs_completed,
  count(*) FILTER (plan_outcome = 'running') AS runs_running,
  count(*) FILTER (plan_outcome = 'failed' AND is_mended IS DISTINCT FROM true) AS runs_failed,
  count(*) FILTER (plan_outcome = 'failed' AND is_mended) AS runs_mended,
  count(*) FILTER (plan_outcome = 'missing') AS runs_missing,
  sum(planned_gpu_hours) AS planned_gpu_hours, sum(gpu_hours) AS gpu_hours
FROM plan_status
JOIN made USING (plan_id)
GROUP BY plan_id
ORDER BY created_at DESC, plan_id"""
    return Query(sql)


def runs(plan_id: str) -> Query:
    """Rows of `plan_status` of one plan, the most informative run first."""
    return Query("SELECT *\nFROM plan_status\nWHERE plan_id = $plan_id\nORDER BY position", {"plan_id": plan_id})


def waiting(chosen: Slice) -> Query:
    """One row per cell of the slice with planned runs that no run fills yet: their number and the newest plan's name.

    Planned runs are one's own, so that grids of published or simulated runs have none.
    """
    sql = """SELECT model, num_nodes, num_gpus, count(*) AS runs_planned, max(plan_id) AS plan_id
FROM plan_status
WHERE plan_outcome = 'missing' AND $origin = 'measured'
  AND accelerator IS NOT DISTINCT FROM $accelerator
  AND seq_len IS NOT DISTINCT FROM $seq_len
  AND gbs_tokens IS NOT DISTINCT FROM $gbs_tokens
GROUP BY ALL
ORDER BY ALL"""
    return Query(sql, {name: getattr(chosen, name) for name in SLICE})
