"""Published frontier configurations, and what this store has to set beside them."""

from __future__ import annotations

from dashboard.queries.query import Query


def published() -> Query:
    """Every published configuration, the ones with a figure first: highest MFU (HFU where that is all there is)."""
    return Query(
        """SELECT frontier.run_id, frontier.model, frontier.num_gpus, frontier.accelerator, frontier.seq_len,
  frontier.precision, frontier.dp, frontier.tp, frontier.pp, frontier.cp, frontier.ep, frontier.tflops_per_gpu,
  frontier.mfu, printed.run_id IS NOT NULL AND printed.mfu_pct IS NULL AND frontier.mfu IS NOT NULL
    AS is_mfu_recomputed, frontier.hfu,
  frontier.comparability, frontier.verification, frontier.source_title, frontier.source_url,
  frontier.table_or_figure, frontier.notes
FROM frontier
LEFT JOIN published_runs AS printed USING (run_id)
ORDER BY coalesce(frontier.mfu, frontier.hfu) DESC NULLS LAST, frontier.model, frontier.num_gpus"""
    )


def own_best(origin: str) -> Query:
    """At most two rows of one origin: its highest MFU anywhere, and its highest at its largest GPU count.

    Left out: the frontier's own rows, runs in 8 bits or less (their MFU counts against a BF16 peak) and an MFU above
    1, which no accelerator reaches.
    """
    return Query(
        """WITH own AS (
  SELECT run_id, model, num_gpus, num_nodes, accelerator, seq_len, layout, precision, mfu, tokens_per_s_per_gpu
  FROM best_configs
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
ORDER BY mfu DESC""",
        {"origin": origin},
    )


def origins() -> Query:
    """Origins that `own_best` can be asked for."""
    return Query("SELECT DISTINCT origin FROM best_configs ORDER BY origin")
