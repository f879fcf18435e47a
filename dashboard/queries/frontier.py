"""Published frontier configurations, and what this store has to set beside them."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import ESTIMATED_MFU, Query

_OF_OWN = (
    "model, num_gpus, num_nodes, accelerator, seq_len, gbs_tokens, layout, precision, mfu, mfu_logged, step_time_s, "
    "tokens_per_s_per_gpu, dp, tp, pp, cp, ep"
)


def published() -> Query:
    """Every published configuration, the ones with a figure first: highest MFU (HFU where that is all there is).

    `mfu` is what the source prints, or the recomputed one where it prints none (`is_mfu_recomputed`).
    """
    sql = """SELECT run_id, model, num_gpus, accelerator, seq_len, precision, dp, tp, pp, cp, ep, global_batch_tokens,
  tflops_per_gpu, coalesce(mfu_logged, mfu) AS mfu, mfu_logged IS NULL AND mfu IS NOT NULL AS is_mfu_recomputed, hfu,
  comparability, verification, source_title, source_url, table_or_figure, notes, extra,
  usd_per_m_tokens_of(usd_per_gpu_hour, tokens_per_s_per_gpu) AS usd_per_m_tokens
FROM frontier
LEFT JOIN (SELECT run_id, extra FROM published_runs) USING (run_id)
LEFT JOIN (SELECT run_id, tokens_per_s_per_gpu FROM runs) USING (run_id)
LEFT JOIN prices USING (accelerator)
ORDER BY coalesce(mfu_logged, frontier.mfu, hfu) DESC NULLS LAST, model, num_gpus"""
    return Query(sql)


def stated() -> Query:
    """What the sources of the published configurations state, as the estimator reads it."""
    return Query("SELECT * FROM published_runs WHERE run_id IN (SELECT run_id FROM frontier)")


def own_best(origin: str) -> Query:
    """At most two rows of one origin: its highest MFU anywhere, and its highest at its largest GPU count.

    The best layout of each cell, and every run that is in no cell because its log does not name the model, say.

    Left out: the frontier's own rows, runs in 8 bits or less (their MFU counts against a BF16 peak) and an MFU above
    1, which no accelerator reaches.
    """
    sql = f"""WITH candidates AS (
  SELECT run_id, origin, {_OF_OWN} FROM best_configs
  UNION ALL BY NAME
  SELECT run_id, r.origin, {_OF_OWN}
  FROM runs AS r
  JOIN (SELECT run_id FROM run_outcomes WHERE NOT has_cell) USING (run_id)
  WHERE may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu)
),
own AS (
  SELECT run_id, {_OF_OWN},
    {ESTIMATED_MFU} AS est_mfu, usd_per_m_tokens_of(usd_per_gpu_hour, tokens_per_s_per_gpu) AS usd_per_m_tokens
  FROM candidates
  LEFT JOIN prices USING (accelerator)
  LEFT JOIN (SELECT run_id, est_mfu, est_step_time_s FROM estimates) USING (run_id)
  WHERE origin = $origin
    AND mfu <= 1
    AND num_gpus IS NOT NULL
    AND (precision IS NULL OR precision IN ('bf16', 'fp16'))
    AND run_id NOT IN (SELECT run_id FROM frontier)
)
SELECT *
FROM own
QUALIFY row_number() OVER (ORDER BY mfu DESC, run_id) = 1
  OR row_number() OVER (ORDER BY num_gpus DESC, mfu DESC, run_id) = 1
ORDER BY mfu DESC"""
    return Query(sql, {"origin": origin})


def origins() -> Query:
    """Origins that may have rows in `own_best`."""
    sql = """SELECT origin FROM best_configs
UNION
SELECT origin FROM runs
WHERE duplicate_of IS NULL AND may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu)
ORDER BY origin"""
    return Query(sql)
