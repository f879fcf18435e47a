"""Nodes: what speaks against each, and all that is known of one."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

MAX_RUNS = 200
MAX_LINES = 200

_SUSPECT = "(runs_naming > 1 OR runs_straggling > 0 OR slow_findings > 0 OR runs_occupied > 0 OR is_failing_more)"


def nodes() -> Query:
    """Rows of `nodes` of every origin with `is_suspect`, those with most against them first."""
    sql = f"""SELECT *, {_SUSPECT} AS is_suspect
FROM nodes
ORDER BY is_suspect DESC,
  runs_naming + 2 * runs_straggling + 2 * slow_findings + runs_occupied + is_failing_more::INTEGER DESC,
  failure_rate_low DESC NULLS LAST, host, origin"""
    return Query(sql)


def of_host(host: str) -> Query:
    """Rows of `nodes` with `is_suspect` on one node: of each origin that has it, own runs first."""
    sql = f"""SELECT *, {_SUSPECT} AS is_suspect
FROM nodes
WHERE host = $host
ORDER BY list_position(['measured', 'simulated', 'published'], origin)"""
    return Query(sql, {"host": host})


def runs(origin: str, host: str) -> Query:
    """Runs on the node, the newest first, and how each is known to be; at most MAX_RUNS, `found` counts all."""
    sql = f"""SELECT r.run_id, r.started_at, o.outcome, r.status, r.model, r.num_nodes, r.num_gpus, r.layout, r.mfu,
  o.gpu_hours, h.host_source, node_name(r.first_failed_host) = h.host AS is_first_failed, count(*) OVER () AS found
FROM run_hosts AS h
JOIN runs AS r USING (run_id)
JOIN run_outcomes AS o USING (run_id)
WHERE h.host = $host AND r.origin = $origin
ORDER BY r.started_at DESC NULLS LAST, r.run_id
LIMIT {MAX_RUNS}"""
    return Query(sql, {"origin": origin, "host": host})


def lines(origin: str, host: str) -> Query:
    """Lines of runs that name the node, or are findings of runs on it alone: failures, stragglers, memory of others."""
    sql = f"""WITH alone AS (
  SELECT run_id FROM run_hosts GROUP BY run_id HAVING count(*) = 1 AND any_value(host) = $host
)
SELECT e.run_id, e.ts, e.kind AS entry_kind, e.rank, e.text, e.source_path, e.line_no, count(*) OVER () AS found
FROM events AS e
JOIN runs AS r USING (run_id)
WHERE r.origin = $origin AND r.duplicate_of IS NULL AND e.kind NOT IN ('scheduler', 'launch', 'training_end')
  AND (node_name(e.host) = $host
    OR e.run_id IN (FROM alone) AND list_contains($findings, e.kind))
ORDER BY list_contains($findings, e.kind) DESC, e.ts DESC NULLS LAST, e.run_id, e.line_no
LIMIT {MAX_LINES}"""
    findings = ["straggler", "oom_by_others", "gpu_shared", "gpu_busy", "not_ending"]
    return Query(sql, {"origin": origin, "host": host, "findings": findings})


def benchmarks(origin: str, host: str) -> Query:
    """Findings of nccl-tests that are slow wherever the node takes part."""
    sql = """SELECT *
FROM nccl_findings
WHERE node_name(host) = $host AND origin = $origin
ORDER BY source_path, line_no"""
    return Query(sql, {"origin": origin, "host": host})


def samples(host: str) -> Query:
    """What monitors saw per GPU of the node: most memory in use, and the least at the record's end."""
    sql = """SELECT gpu_index, gpu_uuid, any_value(accelerator) AS accelerator, count(*) AS samples,
  max(mem_used_bytes) AS mem_used_max_bytes, arg_max(mem_used_bytes, ts) AS mem_used_bytes,
  max(mem_total_bytes) AS mem_total_bytes, max(temperature_c) AS temperature_c, max(power_w) AS power_w
FROM gpu_samples
WHERE node_name(host) = $host
GROUP BY gpu_index, gpu_uuid
ORDER BY gpu_index, gpu_uuid"""
    return Query(sql, {"host": host})
