"""Everything about one run."""

from __future__ import annotations

from sweepscope.dashboard.format.implementation import IMPLEMENTATION
from sweepscope.dashboard.queries.query import Query, Row
from sweepscope.schemas.vocab import HEALTH_FINDINGS

MAX_POINTS = 500  # about one per pixel of the curve
MAX_EVIDENCE = 200


def run(run_id: str) -> Query:
    """The run's row of `runs` with its accelerator's memory; no row when the store has no such run.

    `oom_capacity_bytes` and `oom_reserved_bytes` are those of the fullest card in its out-of-memory lines.
    """
    sql = """SELECT runs.*, accelerators.memory_bytes, accelerators.memory_label, oom.*
FROM runs
LEFT JOIN accelerators USING (accelerator)
LEFT JOIN (
  SELECT max(mem_total_bytes) AS oom_capacity_bytes, max(reserved_bytes) AS oom_reserved_bytes
  FROM gpu_oom_reports
  WHERE run_id = $run_id
) AS oom ON true
WHERE run_id = $run_id"""
    return Query(sql, {"run_id": run_id})


def steps(run_id: str) -> Query:
    """Its steps in order. Past MAX_POINTS each row is a bucket of consecutive steps: medians, and where it begins.

    `place` counts logged steps from 1, `steps_in_row` is how many of them a row covers; the first logged step
    always has a row of its own. `line_no` is the last line read for the row.
    """
    return Query(bucketed_steps("run_id = $run_id", MAX_POINTS), {"run_id": run_id})


def bucketed_steps(condition: str, most: int) -> str:
    """SQL of the steps of the runs that meet a condition, at most about `most` rows of each; see `steps`."""
    return f"""WITH numbered AS (
  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY step) AS place,
    count(*) OVER (PARTITION BY run_id) AS logged
  FROM steps
  WHERE {condition}
)
SELECT run_id, min(step) AS step, CAST(min(place) AS BIGINT) AS place, CAST(count(*) AS BIGINT) AS steps_in_row,
  max(line_no) AS line_no,
  median(step_time_s) FILTER (NOT isnan(step_time_s)) AS step_time_s,
  median(loss) FILTER (isfinite(loss)) AS loss,
  median(tokens_per_s_per_gpu) AS tokens_per_s_per_gpu,
  median(mem_reserved_bytes) AS mem_reserved_bytes,
  median(mem_allocated_bytes) AS mem_allocated_bytes,
  median(grad_norm) FILTER (isfinite(grad_norm)) AS grad_norm,
  max(step_time_s) FILTER (NOT isnan(step_time_s)) AS step_time_max_s,
  arg_max(step, step_time_s) FILTER (NOT isnan(step_time_s)) AS slowest_step
FROM numbered
GROUP BY run_id, CASE WHEN place = 1 THEN 0 ELSE 1 + (place - 2) // CAST(ceil(logged / {most}.0) AS BIGINT) END
ORDER BY run_id, step"""


def all_steps(run_id: str) -> Query:
    """Its steps exactly as logged, for the download."""
    return Query("SELECT *\nFROM steps\nWHERE run_id = $run_id\nORDER BY step", {"run_id": run_id})


def evidence(run_id: str) -> Query:
    """Its evidence lines in the order of the file, at most MAX_EVIDENCE, health findings first; `found` counts all."""
    sql = f"""WITH evidence AS (
  SELECT *, count(*) OVER () AS found
  FROM events
  WHERE run_id = $run_id
  ORDER BY list_contains($findings, kind) DESC, source_path, line_no, kind
  LIMIT {MAX_EVIDENCE}
)
SELECT source_path, line_no, ts, kind, rank, host, text, found
FROM evidence
ORDER BY source_path, line_no, kind"""
    return Query(sql, {"run_id": run_id, "findings": list(HEALTH_FINDINGS)})


def settings(run_id: str) -> Query:
    """Where each of its configuration values comes from: the value in use first, contradicting sources after it."""
    sql = """SELECT name, value, setting_source, is_used, source_path, line_no
FROM settings
WHERE run_id = $run_id
ORDER BY name, is_used DESC, setting_source, source_path, line_no"""
    return Query(sql, {"run_id": run_id})


def arguments(run_id: str) -> Query:
    """What it was launched with, under its framework's own names, and where that is stated."""
    sql = """SELECT name, value, setting_source, source_path, line_no
FROM arguments
WHERE run_id = $run_id
ORDER BY source_path, line_no NULLS FIRST, name"""
    return Query(sql, {"run_id": run_id})


def published(run_id: str) -> Query:
    """Its row of `published_runs`; no row for a run that was parsed from a log."""
    return Query("SELECT *\nFROM published_runs\nWHERE run_id = $run_id", {"run_id": run_id})


def ratios(run_id: str) -> Query:
    """Its row of `run_ratios` with whether its estimate fits; no row without estimate and NCCL output."""
    sql = """SELECT r.*, e.est_fits
FROM run_ratios AS r
LEFT JOIN estimates AS e USING (run_id)
WHERE run_id = $run_id"""
    return Query(sql, {"run_id": run_id})


def place_in_cell(run_id: str) -> Query:
    """Its layout's rank among the layouts of its cell, and what ran both; no row when it is not ranked."""
    both = ", ".join(f"mine.{name}, winner.{name} AS winner_{name}" for name in IMPLEMENTATION)
    sql = f"""WITH cell AS (
  SELECT ranked.*
  FROM ranked_layouts AS ranked
  JOIN runs AS this ON this.run_id = $run_id
  WHERE ranked.origin = this.origin
    AND ranked.model IS NOT DISTINCT FROM this.model
    AND ranked.num_nodes IS NOT DISTINCT FROM this.num_nodes
    AND ranked.num_gpus IS NOT DISTINCT FROM this.num_gpus
    AND ranked.seq_len IS NOT DISTINCT FROM this.seq_len
    AND ranked.gbs_tokens IS NOT DISTINCT FROM this.gbs_tokens
    AND ranked.accelerator IS NOT DISTINCT FROM this.accelerator
)
SELECT mine.rank_in_cell, mine.run_id AS best_repeat_run_id, mine.repeats,
  {both},
  lead_over(winner.tokens_per_s_per_gpu, mine.tokens_per_s_per_gpu) AS winner_lead,
  (SELECT count(*) FROM cell) AS layouts_completed,
  winner.run_id AS winner_run_id, winner.layout AS winner_layout,
  (SELECT run_id FROM cell WHERE rank_in_cell = 2) AS runner_up_run_id
FROM cell AS mine
JOIN runs AS this ON this.run_id = $run_id
  AND mine.framework IS NOT DISTINCT FROM this.framework
  AND mine.layout IS NOT DISTINCT FROM this.layout
  AND mine.variant IS NOT DISTINCT FROM this.variant
  AND mine.options_id IS NOT DISTINCT FROM this.options_id
  AND mine.recompute IS NOT DISTINCT FROM this.recompute
  AND mine.precision IS NOT DISTINCT FROM this.precision
  AND mine.sequence_parallel IS NOT DISTINCT FROM this.sequence_parallel
  AND mine.pipeline_schedule IS NOT DISTINCT FROM this.pipeline_schedule
  AND mine.framework_version IS NOT DISTINCT FROM this.framework_version
  AND mine.torch_version IS NOT DISTINCT FROM this.torch_version
  AND mine.nccl_version IS NOT DISTINCT FROM this.nccl_version
  AND mine.cluster IS NOT DISTINCT FROM this.cluster
JOIN cell AS winner ON winner.rank_in_cell = 1
WHERE this.status = 'completed' AND this.quarantine_reason IS NULL
ORDER BY mine.run_id = $run_id DESC, mine.rank_in_cell
LIMIT 1"""
    return Query(sql, {"run_id": run_id})


def attempts(run_id: str) -> Query:
    """Every attempt of the same unit of ingest (run directory, or single log), this one included, in order.

    Published rows share one file without sharing a run: they have none.
    """
    sql = """SELECT other.run_id, other.attempt, other.status, other.started_at, other.last_step, other.source_path
FROM runs AS this
JOIN files AS mine ON mine.path = this.source_path
JOIN files AS its ON its.unit = mine.unit
JOIN runs AS other ON other.source_path = its.path
WHERE this.run_id = $run_id AND this.origin <> 'published'
ORDER BY other.source_path, other.attempt"""
    return Query(sql, {"run_id": run_id})


def audit(run_id: str) -> Query:
    """What the MFU audit found about it."""
    return Query("SELECT finding, detail\nFROM mfu_audit\nWHERE run_id = $run_id\nORDER BY finding", {"run_id": run_id})


def money_and_energy(run_id: str) -> Query:
    """Its row of `run_costs`; no row without a price and samples of power."""
    return Query("SELECT *\nFROM run_costs\nWHERE run_id = $run_id", {"run_id": run_id})


def cost(run: Row) -> Query:
    """One row: its GPU-hours and what they rest on, those of its sweep, its stretch and its reason to be tried again.

    No row for a duplicate, which counts nowhere. `run` is its row of `runs`.
    """
    sql = f"""SELECT mine.outcome, mine.gpu_hours, mine.gpu_hours_idle, mine.gpu_hours_held, runs.gpu_hours_basis,
  runs.queue_wait_s, runs.startup_s,
  runs.num_gpus, swept.gpu_hours AS sweep_gpu_hours, stretched.duration_s, stretched.usual_duration_s,
  stretched.stretch_cause, retry.reason
FROM (SELECT * FROM run_outcomes WHERE {_IN_SWEEP}) AS mine
JOIN runs USING (run_id)
LEFT JOIN (
  SELECT sum(gpu_hours) AS gpu_hours FROM run_outcomes WHERE origin = $origin AND sweep = $sweep
) AS swept ON true
LEFT JOIN (SELECT * FROM stretched_runs WHERE run_id = $run_id AND {_IN_SWEEP}) AS stretched ON true
LEFT JOIN (SELECT * FROM retry_list WHERE run_id = $run_id AND {_IN_SWEEP}) AS retry ON true
WHERE mine.run_id = $run_id"""
    return _of_sweep(sql, run)


def same_configuration(run: Row) -> Query:
    """Every try of its configuration within its sweep, this one included, in the order of their starts."""
    sql = f"""WITH tries AS (
  SELECT * FROM run_outcomes WHERE {_IN_SWEEP}
)
SELECT other.run_id, other.status, other.gpu_hours
FROM tries AS this
JOIN tries AS other USING (configuration_id)
JOIN runs ON runs.run_id = other.run_id
WHERE this.run_id = $run_id
ORDER BY runs.started_at NULLS LAST, runs.source_path, runs.attempt"""
    return _of_sweep(sql, run)


_IN_SWEEP = "origin = $origin AND sweep IS NOT DISTINCT FROM $sweep"
"""Met before the windows and groups of the views, as all of them are within a sweep: `run_id` alone would not be."""


def _of_sweep(sql: str, run: Row) -> Query:
    return Query(sql, {name: run[name] for name in ("run_id", "origin", "sweep")})


def failed_alike(run: Row) -> Query:
    """Other failures of its sweep with the same status whose deciding line differs only in digits."""
    sql = f"""WITH failed AS (
  SELECT outcomes.run_id, outcomes.origin, outcomes.sweep, outcomes.status, model, num_nodes, layout, status_evidence,
    failure_wording(status_evidence, run_id IN (SELECT run_id FROM events WHERE kind = 'oom_by_others')) AS wording
  FROM run_outcomes AS outcomes
  JOIN (SELECT run_id, model, num_nodes, layout, status_evidence FROM runs) USING (run_id)
  WHERE is_failure AND {_IN_SWEEP}
)
SELECT other.run_id, other.model, other.num_nodes, other.layout, other.status, other.status_evidence
FROM failed AS this
JOIN failed AS other ON other.status = this.status AND other.wording = this.wording AND other.run_id <> this.run_id
WHERE this.run_id = $run_id
ORDER BY other.model, other.num_nodes, other.layout, other.run_id"""
    return _of_sweep(sql, run)
