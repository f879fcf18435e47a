"""What `outcome.classify` has to know of each run, from its steps, settings, events, silences and files."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.runs import outcome
from sweepscope.pipeline.logs.runs.stated import SOURCES_STATED

STATUS_FILE = "status_file"
"""Name under which a sidecar reports the content of a status file."""

_RECORDS = r"(?i)\.(?:jsonl|ndjson|csv|tsv)(?:\.gz|\.zst)?$"
"""Names of files that hold values of steps and nothing else."""
_JSON = r"(?i)\.json(?:\.gz|\.zst)?$"
"""Those of documents, which hold nothing else unless a trainer keeps its state there (`trainer_state.json`)."""

GUESSED_PLAN = "is_plan_guessed"
"""Name under which a dialect concludes that the planned steps may be those of a single epoch."""


_STRIDE = (pl.col("last_step") - pl.col("first_step")) / (pl.col("steps_logged") - 1)
"""Mean distance of logged steps."""


def _is_each_nth_from_zero() -> pl.Expr:
    """Whether each n-th step was logged of steps that count from 0: 9, 19, .. as Lightning's loggers have them."""
    return (_STRIDE > 1) & (pl.col("first_step") + 1 == _STRIDE)


def outcomes_of_runs(
    rows: pl.DataFrame,
    lines_of_steps: pl.DataFrame,
    events: pl.DataFrame,
    chosen: pl.DataFrame,
    silences: pl.DataFrame,
    *,
    beside: pl.Series,
    now: datetime,
) -> pl.DataFrame:
    """`run_id` and `outcome.OUTCOME` columns of every run.

    Args:
        rows: rows of `runs`, with `attempt`, `unit`, `source`, `modified_at` and times.
        lines_of_steps: of each run, where its steps lie in its log (`fold.Folded`).
        events: EVENT_FACTS rows with `run_id`.
        chosen: settings of every run, as `setting_precedence.choose` gives them.
        silences: `silence.silences` of the runs.
        beside: `run_id` of runs with further logs beside that of the steps.
        now: the moment of reading.
    """
    status_files = chosen.filter((pl.col("name") == STATUS_FILE) & pl.col("is_used")).select(
        "run_id", pl.col("value").alias("status_file")
    )
    guessed = chosen.filter((pl.col("name") == GUESSED_PLAN) & pl.col("is_used")).select("run_id").unique()
    configured = (
        chosen.filter(~pl.col("setting_source").is_in(["folder_name", *SOURCES_STATED])).select("run_id").unique()
    )
    # A unit's status file and modification time concern its newest attempt only.
    newest = pl.col("attempt") == pl.col("attempt").max().over("unit")
    attempts = (
        rows.join(lines_of_steps.drop("source_path", "steps_planned"), on="run_id", how="left", maintain_order="left")
        .join(status_files, on="run_id", how="left", maintain_order="left")
        .join(guessed.with_columns(is_plan_guessed=pl.lit(value=True)), on="run_id", how="left", maintain_order="left")
        .join(configured.with_columns(has_settings=pl.lit(value=True)), on="run_id", how="left", maintain_order="left")
        .join(silences.drop("source_path", "line_no", "ts"), on="run_id", how="left", maintain_order="left")
        .select(
            pl.col("run_id").alias("key"),
            "last_step",
            # What counts logged values or batches reaches no number of steps.
            pl.when(~pl.col("step_basis").is_in(["batch", "ordinal"]).fill_null(value=False)).then("steps_planned"),
            pl.col("has_settings", "is_plan_guessed").fill_null(value=False),
            "longest_pause_s",
            "step_time_s",
            is_of_records=(
                (
                    pl.col("path").str.contains(_RECORDS)
                    | (pl.col("path").str.contains(_JSON) & (pl.col("dialect") == INFERRED))
                )
                & ~pl.col("run_id").is_in(beside.implode())
            ),
            last_step_line="last_line",
            previous_step_line="line_before",
            silence=pl.when("is_hang").then("silence"),
            is_from_zero=((pl.col("first_step").min().over("source") == 0) | _is_each_nth_from_zero()).fill_null(
                value=False
            ),
            stride=_STRIDE,
            modified_at=pl.when(newest).then("modified_at"),
            stamped_at=pl.coalesce("ended_at", "started_at"),
            is_step_stamped=pl.col("last_step_ts").is_not_null(),
            status_file=pl.when(newest).then("status_file"),
        )
    )
    seen = events.drop_nulls("run_id").select(pl.col("run_id").alias("key"), "line_no", "kind", "text", "is_secondary")
    return outcome.classify(attempts, seen, now=now).rename({"key": "run_id"})
