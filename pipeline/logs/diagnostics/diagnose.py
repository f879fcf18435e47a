"""Findings on runs beside how they ended: one row of `events` per run and kind of finding, with its figures.

Each kind has a module: `divergence`, `slowdown`, `silence`, `idle_after_end`, `gpu_sharing` (memory of co-tenants),
`stragglers`. This module collects them and drops the lines that only feed them (`evidence.symptoms`). A new kind is a
module and one line in `findings`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.io.spill import release
from sweepscope.pipeline.logs.diagnostics import divergence, gpu_sharing, idle_after_end, silence, slowdown, stragglers
from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.evidence.symptoms import KINDS, SMI_KIND

_RUNS_SMI = "nanogpt"  # modded-nanogpt's scripts call nvidia-smi themselves, so it lists their own processes
_MADE_UP_RANKS = "nanotron"  # its `rank` only distinguishes coordinates

RUNS = pl.Schema({"run_id": pl.String, "status": pl.String, "dialect": pl.String, "num_gpus": pl.Int64})
"""Columns of runs that findings need."""


def findings(
    runs: pl.DataFrame,
    steps: pl.DataFrame,
    events: pl.DataFrame,
    *,
    steps_by_rank: pl.DataFrame,
    silences: pl.DataFrame,
    trainer_starts: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """FINDING rows, and `run_id` with `diverged_at_step` and `held_after_end_s`.

    Args:
        runs: RUNS rows.
        steps: rows of the table `steps`.
        events: FINDING columns and `is_secondary`, symptoms among them.
        steps_by_rank: STEP_FACTS rows of all ranks with `run_id` and `source_path`.
        silences: rows of `silence.silences`.
        trainer_starts: `run_id`, `first_line`: the first line that the trainer printed.
    """
    by_kind = {kind: finding(events.filter(pl.col("kind") == kind)) for kind in (*KINDS, "oom")}
    nan, diverged = divergence.divergence(steps, by_kind["nan_loss"])
    others = runs.filter(pl.col("dialect").fill_null("") != _RUNS_SMI)
    starts = trainer_starts.join(others, on="run_id", how="semi")
    ranked = runs.filter(pl.col("dialect").fill_null("") != _MADE_UP_RANKS)
    release()
    parts = [nan, _skipped(by_kind["skipped_step"])]
    for found in (slowdown.slowdowns, silence.silent_pauses):
        parts.append(found(steps))
        release()
    held, held_s = idle_after_end.held_after_end(runs, steps, events)
    parts += [
        silence.at_end(silences, runs.select("run_id", "status")),
        held,
        gpu_sharing.foreign_memory(by_kind["oom"]),
        gpu_sharing.leftovers(by_kind[SMI_KIND], starts),
        stragglers.reported(by_kind["straggler"]),
        stragglers.printing(steps_by_rank.join(ranked, on="run_id", how="semi")),
        _first(by_kind["gpu_busy"]),
        _first(by_kind["not_ending"]),
    ]
    known = diverged.join(held_s, on="run_id", how="full", coalesce=True)
    return pl.concat([pl.DataFrame(schema=FINDING), *parts]), known


def without_symptoms(events: pl.DataFrame) -> pl.DataFrame:
    """`events` without the lines that only feed findings."""
    return events.filter(~pl.col("kind").is_in(list(KINDS)))


def _first(lines: pl.DataFrame) -> pl.DataFrame:
    """The first line of each run and text, where texts that differ in numbers only (ranks) are one."""
    template = pl.col("text").str.replace_all(r"\d+", "#")
    return (
        lines.with_columns(template=template)
        .unique(["run_id", "template"], keep="first", maintain_order=True)
        .drop("template")
    )


def _skipped(lines: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows with the number of lines on skipped steps, at the first; a loss scaler causes some at the start."""
    counted = lines.group_by("run_id", maintain_order=True).agg(
        n=pl.col("line_no").n_unique(),
        last=pl.col("line_no").last(),
        text=pl.col("text").first(),
        source_path=pl.col("source_path").first(),
        line_no=pl.col("line_no").first(),
        ts=pl.col("ts").first(),
    )
    several = pl.format("{} lines report skipped steps, the last one is line {}; first: {}", "n", "last", "text")
    return finding(counted.with_columns(text=pl.when(pl.col("n") > 1).then(several).otherwise("text")), "skipped_step")
