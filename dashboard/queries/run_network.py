"""NCCL output in the files of one run: its own log if that holds any, else the files beside it.

Files beside it are those of its unit, and those in its directory where no other log there holds a run.
"""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

_BESIDE = """SELECT n.source_path
  FROM runs AS r
  JOIN files AS own ON own.path = r.source_path
  JOIN files AS f ON f.unit = own.unit
  JOIN nccl_files AS n ON n.source_path = f.path
  WHERE r.run_id = $run_id
  UNION
  SELECT n.source_path FROM runs AS r JOIN nccl_files AS n USING (source_path) WHERE r.run_id = $run_id
  UNION
  SELECT n.source_path
  FROM runs AS r
  JOIN nccl_files AS n USING (run_dir)
  WHERE r.run_id = $run_id
    AND NOT EXISTS (FROM runs AS other WHERE other.run_dir = r.run_dir AND other.source_path <> r.source_path)"""
_FILES = f"""WITH beside AS ({_BESIDE}),
paths AS (
  SELECT source_path FROM beside
  WHERE source_path = (SELECT source_path FROM runs WHERE run_id = $run_id)
    OR (SELECT source_path FROM runs WHERE run_id = $run_id) NOT IN (FROM beside)
)
"""


def files(run_id: str) -> Query:
    """Rows of `nccl_files`, the one with most facts first."""
    return _of(
        f"{_FILES}SELECT n.* FROM nccl_files AS n SEMI JOIN paths USING (source_path)\n"
        "ORDER BY num_communicators DESC NULLS LAST, nccl_lines DESC, source_path",
        run_id,
    )


def communicators(run_id: str) -> Query:
    """Communicators by size: how many, their channels, transports and times of coming up."""
    return _of(
        f"""{_FILES}SELECT nranks, num_nodes, count(*) AS communicators, max(ring_channels) AS ring_channels,
  max(coll_channels) AS coll_channels, max(nvls_channels) AS nvls_channels,
  string_agg(DISTINCT transports, ', ' ORDER BY transports) AS transports,
  median(init_time_s) AS init_time_s, max(init_time_s) AS slowest_init_s,
  arg_max(init_slowest_rank, init_time_s) AS init_slowest_rank, max(init_bootstrap_s) AS init_bootstrap_s
FROM nccl_communicators SEMI JOIN paths USING (source_path)
GROUP BY nranks, num_nodes
ORDER BY nranks DESC, num_nodes DESC NULLS LAST""",
        run_id,
    )


def collectives(run_id: str) -> Query:
    """Bytes by operation and size of communicator, most first."""
    return _of(
        f"""{_FILES}SELECT op, nranks, sum(collectives)::BIGINT AS collectives,
  max(message_bytes) AS largest_message_bytes, sum(total_bytes)::BIGINT AS total_bytes
FROM nccl_collectives SEMI JOIN paths USING (source_path)
GROUP BY op, nranks
ORDER BY total_bytes DESC NULLS LAST, op, nranks""",
        run_id,
    )


def findings(run_id: str) -> Query:
    """Rows of `nccl_findings` about these files; findings about a whole sweep are left out."""
    return _of(
        f"{_FILES}SELECT * FROM nccl_findings SEMI JOIN paths USING (source_path)\n"
        "WHERE nccl_rule <> 'mixed_versions_sweep'\nORDER BY nccl_rule, places DESC, source_path",
        run_id,
    )


def warnings(run_id: str) -> Query:
    """Warnings by what they mean, fatal ones first."""
    return _of(
        f"""{_FILES}SELECT severity, warn_class, text, num_lines, source_path, line_no
FROM nccl_warnings SEMI JOIN paths USING (source_path)
ORDER BY CASE severity WHEN 'fatal' THEN 0 WHEN 'unknown' THEN 1 WHEN 'follower' THEN 2 WHEN 'fallback' THEN 3
  ELSE 4 END, line_no""",
        run_id,
    )


def _of(sql: str, run_id: str) -> Query:
    return Query(sql, {"run_id": run_id})
