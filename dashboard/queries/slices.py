"""Which grids the store holds."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query


def slices() -> Query:
    """One row per sweep and slice of the runs that have a cell.

    Its keys, `runs_tried`, `runs_completed` (and ranked), `runs_with_mfu` of those, and the names of its `models`.
    """
    sql = """SELECT origin, accelerator, seq_len, gbs_tokens, sweep, count(*) AS runs_tried,
  count(*) FILTER (may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu)) AS runs_completed,
  count(mfu) FILTER (may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu)) AS runs_with_mfu,
  list_sort(list(DISTINCT model)) AS models
FROM runs
WHERE duplicate_of IS NULL
  AND model IS NOT NULL AND num_nodes IS NOT NULL AND seq_len IS NOT NULL AND gbs_tokens IS NOT NULL
GROUP BY ALL
ORDER BY origin, accelerator, seq_len, gbs_tokens, sweep"""
    return Query(sql)


def runs_of(origin: str) -> Query:
    """One row: the runs of an origin, those without a cell included."""
    return Query(
        "SELECT count(*) AS runs FROM runs WHERE origin = $origin AND duplicate_of IS NULL", {"origin": origin}
    )
