"""What happened to one run, from all of its files, in order."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

MAX_ENTRIES = 400
"""Of a run whose log repeats itself; the rest is in the download."""


def entries(run_id: str) -> Query:
    """Rows of `run_timeline` in order, at most MAX_ENTRIES; `found` counts all.

    Entries of other files than the log are kept first: a log repeats itself, and they do not.
    """
    sql = f"""WITH ranked AS (
  SELECT *, count(*) OVER () AS found, row_number() OVER (ORDER BY entry_source = 'log', entry_no) AS place
  FROM run_timeline
  WHERE run_id = $run_id
)
SELECT * EXCLUDE (place)
FROM ranked
WHERE place <= {MAX_ENTRIES}
ORDER BY entry_no"""
    return Query(sql, {"run_id": run_id})


def all_entries(run_id: str) -> Query:
    """Every row of `run_timeline` on the run, for the download."""
    return Query("SELECT *\nFROM run_timeline\nWHERE run_id = $run_id\nORDER BY entry_no", {"run_id": run_id})


def hosts(run_id: str) -> Query:
    """Its nodes and how each is known, best source first."""
    sql = "SELECT host, host_source\nFROM run_hosts\nWHERE run_id = $run_id\nORDER BY host_source = 'failure', host"
    return Query(sql, {"run_id": run_id})
