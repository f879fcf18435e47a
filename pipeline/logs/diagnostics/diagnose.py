"""What ails a run beside how it ended: one finding (a row of `events`) per run and ailment, with its figures.

Each ailment is a module of its own: `divergence`, `pace` (stretched runs), `silence`, `overtime` (completed, then
hung), `neighbours` (memory of other processes), `stragglers`. Here they are asked, and lines that only feed them
(`symptoms`) are folded away. Add an ailment as a module and one line in `findings`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.diagnostics import divergence, gpu_sharing, idle_after_end, silence, slowdown, stragglers
from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.evidence.symptoms import KINDS, SMI_KIND

_PRINTS_SMI = "nanogpt"  # modded-nanogpt's scripts call nvidia-smi themselves, so what it shows is their own
_MADE_UP_RANKS = "nanotron"  # its `rank` only tells coordinates apart

RUNS = pl.Schema({"run_id": pl.String, "status": pl.String, "dialect": pl.String, "num_gpus": pl.Int64})
"""What the ailments ask of runs."""


def findings(
    runs: pl.DataFrame,
    steps: pl.DataFrame,
    events: pl.DataFrame,
    *,
    printed: pl.DataFrame,
    silences: pl.DataFrame,
    begun: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """FINDING rows, and `run_id` with `diverged_at_step`.

    Args:
        runs: RUNS rows.
        steps: rows of the table `steps`.
        events: FINDING columns and `is_secondary`, symptoms among them.
        printed: parsed step lines of all ranks with `run_id` and `source_path`.
        silences: what `silence.silences` gave.
        begun: `run_id`, `first_line`: the first line in which the trainer says anything.
    """
    said = {kind: finding(events.filter(pl.col("kind") == kind)) for kind in (*KINDS, "oom")}
    nan, diverged = divergence.divergence(steps, said["nan_loss"])
    is_plain = pl.col("dialect").fill_null("") != _PRINTS_SMI
    ranked = runs.filter(pl.col("dialect").fill_null("") != _MADE_UP_RANKS)
    parts = [
        nan,
        _skipped(said["skipped_step"]),
        slowdown.slowdowns(steps),
        silence.silent_pauses(steps),
        silence.at_end(silences, runs.select("run_id", "status")),
        idle_after_end.held_after_end(runs, steps, events),
        gpu_sharing.memory_of_others(said["oom"]),
        gpu_sharing.leftovers(said[SMI_KIND], begun.join(runs.filter(is_plain), on="run_id", how="semi")),
        stragglers.reported(said["straggler"]),
        stragglers.printing(printed.join(ranked, on="run_id", how="semi")),
        _first(said["gpu_busy"]),
        _first(said["not_ending"]),
    ]
    return pl.concat([pl.DataFrame(schema=FINDING), *parts]), diverged


def without_symptoms(events: pl.DataFrame) -> pl.DataFrame:
    """`events` without the lines that `findings` folds."""
    return events.filter(~pl.col("kind").is_in(list(KINDS)))


def _first(said: pl.DataFrame) -> pl.DataFrame:
    """The first line of each run and text up to its numbers, which differ by rank."""
    shape = pl.col("text").str.replace_all(r"\d+", "#")
    return said.with_columns(shape=shape).unique(["run_id", "shape"], keep="first", maintain_order=True).drop("shape")


def _skipped(said: pl.DataFrame) -> pl.DataFrame:
    """How many lines tell of skipped steps, at the first of them; in the first steps a loss scaler finds its scale."""
    counted = said.group_by("run_id", maintain_order=True).agg(
        n=pl.col("line_no").n_unique(),
        last=pl.col("line_no").last(),
        text=pl.col("text").first(),
        source_path=pl.col("source_path").first(),
        line_no=pl.col("line_no").first(),
        ts=pl.col("ts").first(),
    )
    told = pl.format("{} lines tell of skipped steps, the last in line {}; first: {}", "n", "last", "text")
    return finding(counted.with_columns(text=pl.when(pl.col("n") > 1).then(told).otherwise("text")), "skipped_step")
