"""Runs that had no ending when they were read: how far they were, how fast, and when they were written to last."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

LISTED = 50


def live() -> Query:
    """One row per run that was running when it was read, the oldest first, at most LISTED.

    `pace_s` is its median time between two logged steps, per step, by the log's own clock; `usual_pause_s` and
    `longest_pause_s` are between two of them. `mtime_s` is when the newest of its files was written (seconds since
    1970).
    """
    sql = f"""WITH running AS (
  SELECT * FROM runs
  WHERE status = 'running' AND origin <> 'published' AND duplicate_of IS NULL
), timed AS (
  SELECT run_id, step - lag(step) OVER w AS steps, epoch(ts - lag(ts) OVER w) AS pause_s
  FROM steps
  WHERE run_id IN (SELECT run_id FROM running) AND ts IS NOT NULL
  WINDOW w AS (PARTITION BY run_id ORDER BY step)
), pace AS (
  SELECT run_id, median(pause_s / steps) FILTER (pause_s >= 0 AND steps > 0) AS pace_s,
    median(pause_s) AS usual_pause_s, max(pause_s) AS longest_pause_s
  FROM timed
  GROUP BY run_id
), written AS (
  SELECT unit, max(mtime) AS mtime_s FROM files WHERE kind <> 'published' GROUP BY unit
)
SELECT r.run_id, r.source_path, r.run_dir, r.sweep, r.attempt, r.origin, r.line_no,
  r.model, r.params, r.layout, r.num_nodes, r.num_gpus, r.accelerator, r.framework,
  r.first_step, r.last_step, r.steps_planned, r.step_basis, r.tokens_per_s_per_gpu, r.mfu, r.last_loss,
  coalesce(p.pace_s, r.step_time_s) AS pace_s, coalesce(p.usual_pause_s, r.step_time_s) AS usual_pause_s,
  p.longest_pause_s, w.mtime_s
FROM running AS r
LEFT JOIN pace AS p USING (run_id)
LEFT JOIN files AS f ON f.path = r.source_path
LEFT JOIN written AS w ON w.unit = f.unit
ORDER BY r.started_at NULLS LAST, r.run_id
LIMIT {LISTED}"""
    return Query(sql)


def counts() -> Query:
    """One row: one's own and simulated runs, and those of them that failed."""
    sql = """SELECT count(*) AS runs,
  count(*) FILTER (status NOT IN ('completed', 'running', 'unknown', 'truncated', 'cancelled', 'preempted')) AS failed
FROM runs
WHERE origin <> 'published' AND duplicate_of IS NULL"""
    return Query(sql)
