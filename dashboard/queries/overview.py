"""Figures and lists of the first screen."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query, in_slice
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.schemas.vocab import REJECT_REASON_KEPT


def repeats(chosen: Slice) -> Query:
    """One row: layouts of the slice that completed, and those of them that ran more than once."""
    where, params = in_slice(chosen, "ranked_layouts")
    sql = f"""SELECT count(*) AS layouts, count(*) FILTER (repeats > 1) AS repeated
FROM ranked_layouts
WHERE {where}"""
    return Query(sql, params)


def completed(origin: str) -> Query:
    """One row per model and number of accelerators: its fastest layout across batch, sequence and accelerator.

    Repeats of a layout are one, with their median, as in `ranked_layouts`.
    `runs_completed` counts all completed runs, those in no grid and those kept out of rankings included, so that its
    sum is that of the origin; `differs` names what they differ in, with the number of values, unknown as one of them.
    `without_speed` says why the best has no speed that may be compared, and is NULL where it has one.
    """
    sql = f"""WITH tried AS (
  SELECT runs.*, may_be_ranked(runs.status, quarantine_reason, runs.tokens_per_s_per_gpu) AS has_speed,
    layouts.run_id IS NOT NULL AS is_of_layout, layouts.mfu AS layout_mfu,
    layouts.mfu_logged AS layout_mfu_logged, layouts.tokens_per_s_per_gpu AS layout_speed, o.is_ranked
  FROM runs
  JOIN run_outcomes AS o USING (run_id)
  LEFT JOIN (
    SELECT run_id, mfu, mfu_logged, tokens_per_s_per_gpu FROM ranked_layouts WHERE origin = $origin
  ) AS layouts USING (run_id)
  WHERE runs.origin = $origin AND duplicate_of IS NULL AND runs.status = 'completed'
),
groups AS (
  SELECT model, num_gpus, count(*) AS runs_completed, max(params) AS params,
    concat_ws(', ',
      {", ".join(_differs(name, word) for name, word in _CONDITIONS)}) AS differs
  FROM tried
  GROUP BY model, num_gpus
),
best AS (
  SELECT model, num_gpus, num_nodes, run_id, framework, accelerator, seq_len, gbs_tokens, layout,
    CASE WHEN is_of_layout THEN layout_mfu WHEN has_speed THEN mfu END AS mfu,
    CASE WHEN is_of_layout THEN layout_mfu_logged ELSE mfu_logged END AS mfu_logged,
    CASE WHEN is_of_layout THEN layout_speed WHEN has_speed THEN tokens_per_s_per_gpu END AS tokens_per_s_per_gpu,
    step_time_s,
    CASE WHEN has_speed IS DISTINCT FROM true THEN coalesce(
      quarantine_reason, CASE WHEN tokens_per_s IS NULL THEN 'throughput not logged' ELSE 'number of GPUs unknown' END
    ) END AS without_speed
  FROM tried
  WHERE is_of_layout OR is_ranked IS DISTINCT FROM true
  QUALIFY row_number() OVER (
    PARTITION BY model, num_gpus
    ORDER BY has_speed DESC NULLS LAST, coalesce(layout_speed, tried.tokens_per_s_per_gpu) DESC NULLS LAST,
      step_time_s / gbs_tokens NULLS LAST, step_time_s NULLS LAST, run_id
  ) = 1
)
SELECT groups.model, groups.num_gpus, best.* EXCLUDE (model, num_gpus), runs_completed, nullif(differs, '') AS differs,
  usd_per_m_tokens_of(prices.usd_per_gpu_hour, best.tokens_per_s_per_gpu) AS usd_per_m_tokens
FROM groups
JOIN best ON best.model IS NOT DISTINCT FROM groups.model AND best.num_gpus IS NOT DISTINCT FROM groups.num_gpus
LEFT JOIN prices USING (accelerator)
ORDER BY params NULLS LAST, groups.model NULLS LAST, groups.num_gpus NULLS LAST"""
    return Query(sql, {"origin": origin})


def lacking(origin: str) -> Query:
    """One row: completed runs of an origin, and how many of them lack each value that a cell or a ranking needs."""
    counts = ",\n  ".join(f"count(*) FILTER ({name} IS NULL) AS {name}" for name in RANKED_BY)
    sql = f"""SELECT count(*) AS runs_completed,
  {counts}
FROM runs
WHERE origin = $origin AND duplicate_of IS NULL AND status = 'completed'"""
    return Query(sql, {"origin": origin})


RANKED_BY = ("model", "num_nodes", "num_gpus", "seq_len", "gbs_tokens", "tokens_per_s_per_gpu")
"""What a run has to state to be ranked in a cell."""
_CONDITIONS = (
    ("accelerator", "accelerators"),
    ("num_nodes", "node counts"),
    ("seq_len", "sequences"),
    ("gbs_tokens", "batches"),
    ("framework", "frameworks"),
    ("framework_version", "versions"),
)


def _differs(name: str, word: str) -> str:
    """SQL: "3 batches" where runs of a group differ in this, else NULL."""
    values = f"(count(DISTINCT {name}) + CASE WHEN count({name}) < count(*) THEN 1 ELSE 0 END)"
    return f"CASE WHEN {values} > 1 THEN {values} || ' {word}' END"


def without_mfu(chosen: Slice) -> Query:
    """One row per reason for which completed runs of the slice have no MFU, with the number of runs, most first."""
    where, params = in_slice(chosen, "runs")
    sql = f"""SELECT mfu_basis, count(*) AS runs
FROM runs
WHERE duplicate_of IS NULL AND status = 'completed' AND mfu IS NULL AND mfu_basis IS NOT NULL AND {where}
GROUP BY mfu_basis
ORDER BY runs DESC, mfu_basis"""
    return Query(sql, params)


def audit(origin: str) -> Query:
    """One row per finding of the MFU audit for one origin, with the number of runs, most first."""
    sql = """SELECT finding, count(*) AS runs
FROM mfu_audit
WHERE origin = $origin
GROUP BY finding
ORDER BY runs DESC, finding"""
    return Query(sql, {"origin": origin})


def behind(origin: str) -> Query:
    """Measured over estimated step time of every run that has an estimate, by run."""
    sql = """SELECT run_id, time_ratio
FROM estimator_residuals
WHERE origin = $origin
ORDER BY run_id"""
    return Query(sql, {"origin": origin})


def problems(origin: str) -> Query:
    """One row: what went wrong without stopping anything. Files and rejects are the whole store's."""
    sql = """SELECT
  (SELECT count(*) FROM rejects WHERE NOT starts_with(reason, $kept)) AS lines_rejected,
  (SELECT count(*) FROM rejects WHERE starts_with(reason, $kept)) AS values_doubted,
  (SELECT count(*) FROM files WHERE status = 'rejected') AS files_rejected,
  (SELECT count(*) FROM version_changes WHERE origin = $origin AND change_verdict = 'slower') AS regressions,
  count(*) FILTER (quarantine_reason IS NOT NULL) AS runs_quarantined,
  count(*) FILTER (diverged_at_step IS NOT NULL) AS runs_diverged,
  count(*) FILTER (status = 'truncated') AS runs_cut_off,
  count(*) FILTER (status = 'unknown') AS runs_without_end,
  count(*) FILTER (accelerator IS NULL AND status = 'completed') AS runs_without_accelerator,
  count(*) FILTER (run_id IN (SELECT run_id FROM events WHERE kind = 'config_conflict')) AS runs_in_conflict,
  count(*) FILTER (model IS NULL OR num_nodes IS NULL OR seq_len IS NULL OR gbs_tokens IS NULL) AS runs_without_cell
FROM runs
WHERE origin = $origin AND duplicate_of IS NULL"""
    return Query(sql, {"origin": origin, "kept": REJECT_REASON_KEPT})


def finding(origin: str, name: str) -> Query:
    """The runs behind one finding of the audit."""
    sql = """SELECT run_id, model, num_nodes, layout, mfu, mfu_logged, detail, source_path, line_no
FROM mfu_audit
WHERE origin = $origin AND finding = $finding
ORDER BY model, num_nodes, layout"""
    return Query(sql, {"origin": origin, "finding": name})


def quarantined(origin: str) -> Query:
    """The runs kept out of every ranking, and why."""
    sql = """SELECT run_id, model, num_nodes, layout, quarantine_reason, source_path, line_no
FROM runs
WHERE origin = $origin AND duplicate_of IS NULL AND quarantine_reason IS NOT NULL
ORDER BY quarantine_reason, model, num_nodes"""
    return Query(sql, {"origin": origin})


def diverged(origin: str) -> Query:
    """The runs whose loss became NaN or infinite, whatever became of them."""
    sql = """SELECT run_id, model, num_nodes, layout, status, diverged_at_step, last_step, source_path
FROM runs
WHERE origin = $origin AND duplicate_of IS NULL AND diverged_at_step IS NOT NULL
ORDER BY model, num_nodes, layout"""
    return Query(sql, {"origin": origin})


def without_cell(origin: str) -> Query:
    """The runs in no grid, and which values of a cell's key their sources lack."""
    sql = """SELECT run_id, status, framework,
  concat_ws(', ', CASE WHEN model IS NULL THEN 'model' END, CASE WHEN num_nodes IS NULL THEN 'nodes' END,
    CASE WHEN seq_len IS NULL THEN 'sequence' END, CASE WHEN gbs_tokens IS NULL THEN 'batch' END) AS missing,
  model, layout, source_path, line_no
FROM runs
WHERE origin = $origin AND duplicate_of IS NULL
  AND (model IS NULL OR num_nodes IS NULL OR seq_len IS NULL OR gbs_tokens IS NULL)
ORDER BY missing, source_path, line_no"""
    return Query(sql, {"origin": origin})


def conflicts(origin: str) -> Query:
    """The lines in which two sources of a run disagree on a setting."""
    sql = """SELECT run_id, model, layout, text, events.source_path, events.line_no
FROM events
JOIN runs USING (run_id)
WHERE events.kind = 'config_conflict' AND runs.origin = $origin AND duplicate_of IS NULL
ORDER BY run_id, events.line_no"""
    return Query(sql, {"origin": origin})
