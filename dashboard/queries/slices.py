"""Which slices the store holds."""

from __future__ import annotations

from dashboard.queries.query import Query


def slices() -> Query:
    """One row per slice of `grid_cells`: its key, runs tried and completed, cells; the fullest first."""
    return Query(
        """SELECT origin, accelerator, seq_len, gbs_tokens,
  CAST(sum(runs_tried) AS BIGINT) AS runs_tried,
  CAST(sum(runs_completed) AS BIGINT) AS runs_completed,
  count(*) AS cells
FROM grid_cells
GROUP BY ALL
ORDER BY runs_completed DESC, runs_tried DESC, origin, accelerator, seq_len, gbs_tokens"""
    )


def runs_of(origin: str) -> Query:
    """One row: the runs of an origin, those without a cell included."""
    return Query(
        "SELECT count(*) AS runs FROM runs WHERE origin = $origin AND duplicate_of IS NULL", {"origin": origin}
    )
