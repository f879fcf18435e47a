"""Traces of profilers in the directory of one run: what its steps did on each GPU.

A trace belongs to the only run of its directory, or of the nearest one above that has runs; of several it is nobody's.
"""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

_FILES = """WITH mine AS (
  SELECT any_value(run_dir) AS run_dir
  FROM runs
  WHERE duplicate_of IS NULL AND run_dir = (SELECT run_dir FROM runs WHERE run_id = $run_id)
  HAVING count(*) = 1
),
traces AS (
  SELECT DISTINCT t.source_path, t.run_dir
  FROM trace_steps AS t
  JOIN mine ON t.run_dir = mine.run_dir OR starts_with(t.run_dir, mine.run_dir || '/')
),
files AS (
  SELECT source_path
  FROM traces
  WHERE NOT EXISTS (
    SELECT 1 FROM runs, mine
    WHERE length(runs.run_dir) > length(mine.run_dir)
      AND (traces.run_dir = runs.run_dir OR starts_with(traces.run_dir, runs.run_dir || '/'))
  )
)
"""


def ranks(run_id: str) -> Query:
    """One row per traced process, slowest first: medians over its steps in seconds.

    `hidden_share` is the part of its exchange that ran behind compute, over all steps; NULL without exchange.
    """
    sql = f"""{_FILES}SELECT source_path, rank, count(*) AS traced_steps, median(duration_s) AS duration_s,
  median(device_busy_s) AS device_busy_s, median(compute_s) AS compute_s, median(exchange_s) AS exchange_s,
  median(exposed_exchange_s) AS exposed_exchange_s,
  1 - sum(exposed_exchange_s) / nullif(sum(exchange_s), 0) AS hidden_share
FROM trace_steps
SEMI JOIN files USING (source_path)
GROUP BY source_path, pid, rank
ORDER BY duration_s DESC, rank, source_path"""
    return Query(sql, {"run_id": run_id})


def collectives(run_id: str) -> Query:
    """One row per operation, the longest in sum first: kernels and their seconds per step and traced process."""
    sql = f"""{_FILES}SELECT trace_op, sum(calls) / sum(traced_steps) AS calls_per_step,
  sum(kernel_s) / sum(traced_steps) AS kernel_s, max(longest_kernel_s) AS longest_kernel_s
FROM trace_collectives
SEMI JOIN files USING (source_path)
WHERE traced_steps > 0
GROUP BY trace_op
ORDER BY kernel_s DESC, trace_op"""
    return Query(sql, {"run_id": run_id})
