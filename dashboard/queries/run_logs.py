"""The log of a run as the ledger knows it, and which of its lines are the run's."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query


def log_of(run_id: str) -> Query:
    """One row: what the ledger knows of the run's own log, and its lines; no row of a published run."""
    sql = """SELECT f.path, f.bytes, f.mtime, f.content_bytes, f.content_digest, own.from_line, own.to_line
FROM runs AS r
JOIN run_files AS own ON own.run_id = r.run_id AND own.path = r.source_path
JOIN files AS f ON f.path = r.source_path
WHERE r.run_id = $run_id AND f.kind = 'log' AND f.status <> 'rejected'"""
    return Query(sql, {"run_id": run_id})
