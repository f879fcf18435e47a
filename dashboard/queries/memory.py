"""GPU memory of one origin and one sweep of it or all: peaks, waterfall, fragmentation, terms, fit, snapshots."""

from __future__ import annotations

from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.query import Query

# An artefact that no run claims is measured, and of the sweep that its directory names.
_SNAPSHOTS = """SELECT s.* EXCLUDE (sweep), r.run_id, coalesce(r.origin, 'measured') AS origin,
    coalesce(r.sweep, s.sweep) AS sweep, r.layout, r.model
  FROM memory_snapshots AS s
  LEFT JOIN run_snapshots AS j ON j.source_path = s.source_path AND j.device IS NOT DISTINCT FROM s.device
  LEFT JOIN runs AS r USING (run_id)"""

_OOM_LINES = "SELECT count(*) FROM gpu_oom_reports"


def origins() -> Query:
    """One row per origin with any measured memory, a run out of GPU memory, or a memory artefact."""
    sql = f"""SELECT DISTINCT origin
FROM (
  SELECT origin FROM runs
  WHERE duplicate_of IS NULL
    AND (coalesce(mem_peak_allocated_bytes, mem_peak_reserved_bytes) IS NOT NULL OR status = 'oom')
  UNION ALL SELECT origin FROM run_gpu_memory JOIN runs USING (run_id)
  UNION ALL SELECT origin FROM ({_SNAPSHOTS})
)
ORDER BY origin"""
    return Query(sql)


def peaks(origin: str) -> Query:
    """One row per run of an origin with its levels and verdict, those that failed first, then the fullest.

    A run that failed without a figure has no levels and still a row.
    """
    sql = f"""SELECT coalesce(w.run_id, f.run_id) AS run_id, r.sweep, r.model, r.num_nodes, r.num_gpus, r.accelerator,
  r.layout, r.recompute, r.mbs, r.status, f.mem_verdict, f.verdict_basis, f.verdict_evidence, f.oom_requested_bytes,
  f.oom_missing_bytes, f.oom_inactive_bytes, f.oom_line_no, coalesce(w.est_mem_bytes, f.est_mem_bytes) AS est_mem_bytes,
  w.mem_peak_allocated_bytes, w.mem_peak_reserved_bytes, w.mem_used_max_bytes, w.eps_frag, w.outside_allocator_bytes,
  w.snapshot_path, w.peak_source, coalesce(w.mem_total_bytes, f.mem_total_bytes) AS mem_total_bytes,
  ({_OOM_LINES} AS o WHERE o.run_id = r.run_id) AS oom_lines,
  coalesce(w.mem_used_max_bytes, w.mem_peak_reserved_bytes, w.mem_peak_allocated_bytes)
    / coalesce(w.mem_total_bytes, f.mem_total_bytes) AS card_share
FROM (SELECT * FROM memory_waterfall WHERE origin = $origin) AS w
FULL JOIN (SELECT * FROM memory_fit WHERE origin = $origin) AS f ON f.run_id = w.run_id
JOIN runs AS r ON r.run_id = coalesce(w.run_id, f.run_id)
ORDER BY r.status = 'oom' DESC, card_share DESC NULLS LAST, r.model, r.layout, run_id"""
    return Query(sql, {"origin": origin})


def parts(run_id: str) -> Query:
    """The parts of one run's waterfall in order; none where nothing was measured."""
    sql = """SELECT part_no, part_kind, part, bytes, begins_at_bytes
FROM memory_waterfall_parts
WHERE run_id = $run_id
ORDER BY part_no"""
    return Query(sql, {"run_id": run_id})


def fit(run_id: str) -> Query:
    """The run's verdict and its number of out-of-memory lines; no row where it neither failed nor came near."""
    sql = f"""SELECT *, ({_OOM_LINES} WHERE run_id = $run_id) AS oom_lines
FROM memory_fit
WHERE run_id = $run_id"""
    return Query(sql, {"run_id": run_id})


def fragmentation(scope: Scope) -> Query:
    """Rows of `memory_fragmentation`: over all sweeps first, then each sweep; of one sweep only its own."""
    condition = scope.condition
    sql = f"""SELECT *
FROM memory_fragmentation
WHERE {condition}
ORDER BY sweep IS NULL DESC, n DESC, sweep, framework"""
    return Query(sql, scope.params)


def terms(scope: Scope) -> Query:
    """Terms of the estimate for the scope as a whole, the one that explains most first."""
    condition = scope.condition if scope.sweep is not None else f"{scope.condition} AND sweep IS NULL"
    sql = f"""SELECT *
FROM memory_terms
WHERE {condition} AND (explained_share IS NOT NULL OR n_snapshots > 0)
ORDER BY n DESC, framework, explained_share DESC NULLS LAST, term"""
    return Query(sql, scope.params)


def snapshots(origin: str) -> Query:
    """One row per memory artefact and device of an origin, those that failed first, then the largest peak."""
    sql = f"""SELECT source_path, device, rank, mem_source, run_id, sweep, model, layout,
  coalesce(peak_allocated_bytes, peak_requested_active_bytes) AS peak_bytes, peak_is_lower_bound, peak_reserved_bytes,
  fragmentation_at_peak, fragmentation, oom_events, events, peak_phase, violations, warnings
FROM ({_SNAPSHOTS})
WHERE origin = $origin
ORDER BY coalesce(oom_events, 0) > 0 DESC, peak_bytes DESC NULLS LAST, source_path, device"""
    return Query(sql, {"origin": origin})


def of_run(run_id: str) -> Query:
    """The memory artefacts of one run, the largest peak first."""
    sql = """SELECT s.source_path, s.device, s.rank, s.mem_source, s.oom_events, s.peak_is_lower_bound,
  coalesce(s.peak_allocated_bytes, s.peak_requested_active_bytes) AS peak_bytes
FROM run_snapshots AS j
JOIN memory_snapshots AS s ON s.source_path = j.source_path AND s.device IS NOT DISTINCT FROM j.device
WHERE j.run_id = $run_id
ORDER BY peak_bytes DESC NULLS LAST, s.source_path"""
    return Query(sql, {"run_id": run_id})
