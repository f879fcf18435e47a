"""Notes, tags and named views."""

from __future__ import annotations

from collections.abc import Mapping

from sweepscope.dashboard.queries.query import Query
from sweepscope.schemas.tables.notes import CELL


def of_run(run_id: str) -> Query:
    """Notes and tags about a run: its own first, then those on its cell and its day; tags before notes."""
    sql = """SELECT *
FROM run_notes
WHERE run_id = $run_id
ORDER BY list_position(['run', 'cell', 'day'], note_about), note_kind = 'note', written_at, note_id"""
    return Query(sql, {"run_id": run_id})


def of_cell(cell: Mapping[str, object]) -> Query:
    """Notes and tags on a cell (a value per column of CELL): those that name none of its values otherwise."""
    same = "\n  AND ".join(f"({name} IS NULL OR {name} IS NOT DISTINCT FROM ${name})" for name in CELL)
    sql = f"""SELECT *, 'cell' AS note_about
FROM notes
WHERE note_kind <> 'view' AND model IS NOT NULL
  AND {same}
ORDER BY note_kind = 'note', written_at, note_id"""
    return Query(sql, {name: cell[name] for name in CELL})


def views() -> Query:
    """Named views by name."""
    return Query(
        "SELECT note_id, text, address, written_at\nFROM notes\nWHERE note_kind = 'view'\nORDER BY lower(text)"
    )


def tags() -> Query:
    """Tags with the number of runs that each is about, most first."""
    sql = """SELECT text AS tag, count(DISTINCT run_id) AS runs
FROM run_notes
WHERE note_kind = 'tag'
GROUP BY text
ORDER BY runs DESC, tag"""
    return Query(sql)
