"""One file of the ledger, so that its lines can be shown: nothing else is ever opened."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

MOST_EVENTS = 200


def known(path: str) -> Query:
    """What the ledger knows of a file; no row of a file that was not read."""
    sql = """SELECT path, kind, bytes, mtime, content_bytes, content_digest
FROM files
WHERE path = $path AND kind <> 'published' AND status <> 'rejected'"""
    return Query(sql, {"path": path})


def runs_of(path: str) -> Query:
    """The runs that the file tells of, by its own lines or as a file beside their logs."""
    sql = """SELECT run_id, model, num_gpus, accelerator, attempt, status
FROM runs
WHERE source_path = $path OR run_id IN (SELECT run_id FROM events WHERE source_path = $path)
ORDER BY attempt, run_id
LIMIT 20"""
    return Query(sql, {"path": path})


def evidence(path: str) -> Query:
    """Evidence lines of the file in their order, at most MOST_EVENTS: where to look next."""
    sql = f"""SELECT line_no, kind, first(text) AS text
FROM events
WHERE source_path = $path AND line_no IS NOT NULL
GROUP BY line_no, kind
ORDER BY line_no, kind
LIMIT {MOST_EVENTS}"""
    return Query(sql, {"path": path})
