"""What the network did, for one origin and one sweep of it or all: files, findings, init times, bandwidths, hangs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.query import Query

_FILES = "SELECT source_path FROM nccl_files WHERE {condition}"

# Dumps of the flight recorder are no NCCL output, so that a hang in them takes its sweep from the run beside it.
HANGS = """SELECT h.*, coalesce(n.origin, r.origin, 'measured') AS origin, coalesce(n.sweep, r.sweep) AS sweep
  FROM nccl_hangs AS h
  LEFT JOIN nccl_files AS n USING (source_path)
  LEFT JOIN (
    SELECT run_dir, any_value(origin) AS origin, any_value(sweep) AS sweep FROM runs GROUP BY run_dir
  ) AS r ON r.run_dir = h.run_dir"""


def _in(scope: Scope, table: str = "") -> str:
    files = _FILES.format(condition=scope.condition)
    return f"{table}source_path IN ({files})"


def origins() -> Query:
    """One row per origin with NCCL output or hangs."""
    sql = f"""SELECT DISTINCT origin
FROM (SELECT origin FROM nccl_files UNION ALL SELECT origin FROM ({HANGS}))
ORDER BY origin"""
    return Query(sql)


def sweeps(origin: str) -> Query:
    """One row per sweep of an origin with its number of files, most first; a hang known from dumps alone has none."""
    sql = f"""SELECT sweep, sum(files)::BIGINT AS files
FROM (
  SELECT sweep, 1 AS files FROM nccl_files WHERE origin = $origin
  UNION ALL SELECT sweep, 0 FROM ({HANGS}) WHERE origin = $origin
)
WHERE sweep IS NOT NULL
GROUP BY sweep
ORDER BY files DESC, sweep"""
    return Query(sql, {"origin": origin})


def totals(scope: Scope) -> Query:
    """One row: files, those with debug output, versions, the largest communicator, unparsed lines."""
    sql = f"""SELECT count(*) AS files, count(*) FILTER (num_communicators > 0) AS files_with_communicators,
  count(*) FILTER (bench_rows > 0) AS files_with_benchmarks,
  list(DISTINCT concat_ws(' ', nccl_flavour, nccl_version)) FILTER (nccl_version IS NOT NULL) AS versions,
  max(nranks_max) AS nranks_max, max(num_nodes) AS num_nodes, sum(nccl_lines)::BIGINT AS nccl_lines
FROM nccl_files
WHERE {scope.condition}"""
    return Query(sql, scope.params)


def findings(scope: Scope) -> Query:
    """Rows of `nccl_findings`, each with a run of its file (NULL: none)."""
    sql = f"""SELECT f.*, r.run_id
FROM nccl_findings AS f
LEFT JOIN (SELECT source_path, min(run_id) AS run_id FROM runs GROUP BY source_path) AS r USING (source_path)
WHERE {scope.condition}
ORDER BY f.places DESC, f.source_path, f.evidence"""
    return Query(sql, scope.params)


def files(scope: Scope) -> Query:
    """One row per file with the set-up of the library."""
    sql = f"""SELECT n.*, r.run_id
FROM nccl_files AS n
LEFT JOIN (SELECT source_path, min(run_id) AS run_id FROM runs GROUP BY source_path) AS r USING (source_path)
WHERE {scope.condition} AND (nccl_version IS NOT NULL OR num_communicators > 0)
ORDER BY nranks_max DESC NULLS LAST, source_path"""
    return Query(sql, scope.params)


def init_times(scope: Scope) -> Query:
    """One row per communicator of several ranks whose initialisation was timed."""
    sql = f"""SELECT source_path, line_no, nranks, num_nodes, network, init_time_s, init_bootstrap_s, init_slowest_rank
FROM nccl_communicators
WHERE {_in(scope)} AND init_time_s IS NOT NULL AND nranks > 1
ORDER BY nranks, init_time_s, source_path, line_no"""
    return Query(sql, scope.params)


def operations(scope: Scope) -> Query:
    """One row per benchmarked operation (NULL: not printed), with its files, most first, known ones before unknown."""
    sql = f"""SELECT op, count(DISTINCT source_path) AS files
FROM nccl_bench
WHERE {_in(scope)} AND busbw_bytes_per_s IS NOT NULL AND nranks > 1
GROUP BY op
ORDER BY op IS NULL, files DESC, op"""
    return Query(sql, scope.params)


def bandwidths(scope: Scope, op: str | None) -> Query:
    """One row per number of nodes, ranks, `fabric` and size: median and best bus bandwidth over the files.

    A fabric is what a file names of cluster, accelerator and network. Of a file that names none, nothing says that it
    ran where another did: its own name stands for it.
    """
    sql = f"""SELECT op, num_nodes, nranks, fabric, message_bytes, median(busbw) AS busbw_bytes_per_s,
  max(busbw) AS best_busbw_bytes_per_s, count(DISTINCT source_path) AS files
FROM (
  SELECT nccl_bench.*, greatest(busbw_bytes_per_s, in_place_busbw_bytes_per_s) AS busbw,
    coalesce(nullif(concat_ws(', ', clusters.cluster, nccl_bench.accelerator, networks), ''),
      regexp_extract(source_path, '[^/]*$')) AS fabric
  FROM nccl_bench
  LEFT JOIN (SELECT source_path, networks FROM nccl_files) USING (source_path)
  LEFT JOIN (
    SELECT source_path, any_value(cluster) AS cluster FROM runs GROUP BY source_path
  ) AS clusters USING (source_path)
  WHERE {_in(scope)} AND op IS NOT DISTINCT FROM $op AND nranks > 1 AND message_bytes > 0
)
WHERE busbw IS NOT NULL
GROUP BY ALL
ORDER BY num_nodes NULLS LAST, nranks, fabric, message_bytes"""
    return Query(sql, {**scope.params, "op": op})


def published(op: str | None) -> Query:
    """Bandwidths of the operation that others published, by nodes."""
    sql = """SELECT *
FROM published_bandwidths
WHERE op = $op
ORDER BY source_id, message_bytes, num_nodes"""
    return Query(sql, {"op": op})


def by_nodes(scope: Scope, op: str | None, message_bytes: int) -> Query:
    """One row per number of nodes and ranks: bus bandwidth at the nearest size, at most a factor of two away."""
    sql = f"""WITH near AS (
  SELECT *, greatest(busbw_bytes_per_s, in_place_busbw_bytes_per_s) AS busbw,
    abs(log2(message_bytes / $message_bytes)) AS away
  FROM nccl_bench
  WHERE {_in(scope)} AND op IS NOT DISTINCT FROM $op AND nranks > 1 AND num_nodes > 0 AND message_bytes > 0
  QUALIFY away = min(away) OVER (PARTITION BY source_path, table_no, nranks, num_nodes)
)
SELECT num_nodes, nranks, median(busbw) AS busbw_bytes_per_s, max(busbw) AS best_busbw_bytes_per_s,
  count(DISTINCT source_path) AS files, any_value(message_bytes) AS message_bytes
FROM near
WHERE away <= 1 AND busbw IS NOT NULL
GROUP BY num_nodes, nranks
ORDER BY num_nodes, nranks"""
    return Query(sql, {**scope.params, "op": op, "message_bytes": message_bytes})


def links_of(scope: Scope, op: str | None) -> Query:
    """Links of the accelerators named in the benchmarks; several ranks per node share its network."""
    sql = f"""SELECT a.accelerator, a.link_bytes_per_s, a.network_bytes_per_s,
  max(b.nranks // b.num_nodes) AS ranks_per_node, max(b.num_nodes) AS num_nodes
FROM nccl_bench AS b
JOIN accelerator_links AS a USING (accelerator)
WHERE b.{_in(scope)} AND b.op IS NOT DISTINCT FROM $op AND b.nranks > 1 AND b.num_nodes > 0
GROUP BY ALL
ORDER BY a.accelerator"""
    return Query(sql, {**scope.params, "op": op})


def best_bandwidth(scope: Scope) -> Query:
    """The row with the highest bus bandwidth, in place or out of it, if there is any."""
    sql = f"""SELECT op, num_nodes, nranks, message_bytes,
  greatest(busbw_bytes_per_s, in_place_busbw_bytes_per_s) AS busbw_bytes_per_s, source_path, line_no
FROM nccl_bench
WHERE {_in(scope)} AND greatest(busbw_bytes_per_s, in_place_busbw_bytes_per_s) IS NOT NULL
  AND nranks > 1
ORDER BY busbw_bytes_per_s DESC, source_path, line_no
LIMIT 1"""
    return Query(sql, scope.params)


def hangs(scope: Scope) -> Query:
    """Rows of `nccl_hangs`, the first of each file first."""
    sql = f"""SELECT *
FROM ({HANGS})
WHERE {scope.condition}
ORDER BY suspect IS NULL, source_path, is_first DESC, line_no"""
    return Query(sql, scope.params)


def recorded(hang: Mapping[str, Any]) -> Query:
    """One row per rank with a flight recorder dump beside a hang: how far it was in the hang's process group."""
    sql = """SELECT rank, max(last_enqueued_seq) AS last_enqueued_seq, max(last_started_seq) AS last_started_seq,
  max(last_completed_seq) AS last_completed_seq
FROM flight_records
WHERE run_dir = $run_dir AND rank IS NOT NULL
  AND $process_group IN (pg_name, pg_name || '(' || pg_desc || ')')
GROUP BY rank
ORDER BY rank"""
    return Query(sql, {"run_dir": hang["run_dir"], "process_group": hang["process_group"]})
