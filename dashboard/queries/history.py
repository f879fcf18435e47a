"""How the ranking of a cell came about: who led when, and what new versions of the software changed."""

from __future__ import annotations

from collections.abc import Mapping

from sweepscope.dashboard.queries.query import IN_SLICE, Query
from sweepscope.dashboard.selection.filters import SLICE
from sweepscope.dashboard.selection.slices import Slice

_IN_CELL = f"""{IN_SLICE}
  AND model = $model AND num_nodes = $num_nodes AND num_gpus IS NOT DISTINCT FROM $num_gpus"""


def _cell_of(chosen: Slice, cell: Mapping[str, object]) -> dict[str, object]:
    key = {name: cell[name] for name in ("model", "num_nodes", "num_gpus")}
    return {**{name: getattr(chosen, name) for name in SLICE}, **key}


def leads(chosen: Slice, cell: Mapping[str, object]) -> Query:
    """Rows of `lead_history` of one cell (a row of `queries.cells.cells`), the present leader first."""
    sql = f"""SELECT *
FROM lead_history
WHERE {_IN_CELL}
ORDER BY flip_no DESC"""
    return Query(sql, _cell_of(chosen, cell))


def changes(chosen: Slice, cell: Mapping[str, object]) -> Query:
    """Rows of `version_changes` of one cell: regressions first, the worst of them first."""
    sql = f"""SELECT *
FROM version_changes
WHERE {_IN_CELL}
ORDER BY change_verdict <> 'slower', change, measured_at DESC, run_id"""
    return Query(sql, _cell_of(chosen, cell))


def regressions(origin: str) -> Query:
    """Rows of `version_changes` of an origin that are regressions, the worst first."""
    sql = """SELECT *
FROM version_changes
WHERE origin = $origin AND change_verdict = 'slower'
ORDER BY change, model, num_nodes, layout, run_id"""
    return Query(sql, {"origin": origin})
