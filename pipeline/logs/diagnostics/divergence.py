"""Losses that became NaN or rose for good, from logged steps and from lines that report a NaN.

Two rules give `diverged_at_step`, the first logged step of a stretch that lasts to the run's last logged step:

1. The loss is NaN or infinite, or (on at least NAN_GRAD_STEPS steps) the gradient norm is. A value that becomes finite
   again is an event and no divergence: a loss scaler that searches its scale overflows a few times in a healthy run.
2. The loss rose. Let y be the median of the last MEDIAN_STEPS finite losses, best the least y so far, and sigma the
   noise of a single logged loss (median absolute difference of adjacent ones, scaled as for a normal distribution).
   A step is up where y > best + max(SIGMAS * sigma, RISE_NATS, RISE_SHARE * best). The run diverged if at least its
   last LAST_STEPS losses are all up, out of at least MIN_STEPS.

False positives of rule 2: a loss that another mixture of data or another objective raises for good by more than all
three amounts. Noise alone causes none: LAST_STEPS medians in a row would have to lie 8 sigma above the best, and a
spike shorter than half of MEDIAN_STEPS never reaches y. False negatives: rises of less than half a nat, spikes that
recover, and runs that stop within LAST_STEPS. The constants are those of `schemas.thresholds` named DIVERGENCE_....
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from sweepscope.pipeline.io.spill import SLICE_ROWS
from sweepscope.pipeline.logs.diagnostics.finding import FINDING, at_line, finding
from sweepscope.pipeline.logs.figures import ROWS, first, last_of, least, of_runs, total
from sweepscope.pipeline.logs.steady_state import in_runs
from sweepscope.schemas.thresholds import (
    DIVERGENCE_LAST_STEPS,
    DIVERGENCE_MEDIAN_STEPS,
    DIVERGENCE_MIN_STEPS,
    DIVERGENCE_RISE_NATS,
    DIVERGENCE_RISE_SHARE,
    DIVERGENCE_SIGMAS,
    NAN_GRAD_STEPS,
)

_TO_SIGMA = 1.4826 / 2**0.5  # MAD of a normal distribution, and the difference of two values has twice the variance

NOISE_STEPS = 100_000
"""Differences of losses whose median is the noise of a run."""

DIVERGED = pl.Schema({"run_id": pl.String, "diverged_at_step": pl.Int64})


def divergence(steps: pl.DataFrame, nan_lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Findings of kinds `nan_loss` and `diverged`, and DIVERGED rows of the runs that did.

    Args:
        steps: `run_id`, `source_path`, `line_no`, `ts`, `step`, `loss`, `grad_norm`; one row per run and step.
        nan_lines: FINDING rows of kind `nan_loss`: lines that report a NaN.
    """
    steps = in_runs(steps.select(cs.by_name(*FINDING, "run", "step", "loss", "grad_norm", require_all=False)))
    nan, rise = _not_finite(steps), _rising(steps)
    reported = _reported(nan_lines, steps)
    parts = [part.drop_nulls("diverged_at_step") for part in (nan, reported, rise)]
    diverged = pl.concat(part.select(DIVERGED.names()) for part in parts).cast(DIVERGED)
    # The step line that holds the NaN is better evidence than a line that counts it.
    reported = reported.join(nan, on="run_id", how="anti")
    return (
        pl.concat([finding(nan, "nan_loss"), finding(reported, "nan_loss"), finding(rise, "diverged")]),
        diverged.group_by("run_id", maintain_order=True).agg(pl.col("diverged_at_step").min()),
    )


def _not_finite(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per run with a NaN: the line of its first one, `text`, and `diverged_at_step` when it stayed."""
    is_bad_loss = pl.col("loss").is_not_null() & ~pl.col("loss").is_finite()
    is_bad_norm = pl.col("grad_norm").is_not_null() & ~pl.col("grad_norm").is_finite()
    marked = steps.with_columns(is_bad_loss=is_bad_loss, is_bad_norm=is_bad_norm)
    bad = marked.filter(pl.col("is_bad_loss") | pl.col("is_bad_norm"))
    marked = marked.filter(pl.col("run").is_in(bad["run"].unique().implode()))
    counted = marked.group_by("run_id", maintain_order=True).agg(
        losses=pl.col("is_bad_loss").sum(),
        norms=pl.col("is_bad_norm").sum(),
        last_step=pl.col("step").last(),
        good_loss=pl.col("step").filter(pl.col("loss").is_finite()).max(),
        good_norm=pl.col("step").filter(pl.col("grad_norm").is_finite()).max(),
        bad_since=pl.col("step").filter("is_bad_loss").min(),
        norm_bad_since=pl.col("step").filter("is_bad_norm").min(),
    )
    affected = counted.filter((pl.col("losses") > 0) | (pl.col("norms") >= NAN_GRAD_STEPS))
    if affected.is_empty():
        return at_line(affected, steps, "bad_since").with_columns(
            text=pl.lit(""), diverged_at_step=pl.lit(None, pl.Int64)
        )

    def stays_from(is_bad: str, good: str, least: int) -> pl.Expr:
        """First bad step after the last good one, where at least `least` bad ones follow that."""
        behind = pl.col(is_bad) & (pl.col(good).is_null() | (pl.col("step") > pl.col(good)))
        return pl.when(behind.sum() >= least).then(pl.col("step").filter(behind).min())

    stays = (
        marked.join(affected.select("run_id", "good_loss", "good_norm"), on="run_id", maintain_order="left")
        .group_by("run_id", maintain_order=True)
        .agg(
            loss_from=stays_from("is_bad_loss", "good_loss", 1),
            norm_from=stays_from("is_bad_norm", "good_norm", NAN_GRAD_STEPS),
        )
        .select("run_id", diverged_at_step=pl.min_horizontal("loss_from", "norm_from"))
    )
    affected = affected.join(stays, on="run_id", maintain_order="left")
    has_loss = pl.col("losses") > 0
    first = pl.when(has_loss).then("bad_since").otherwise("norm_bad_since")
    text = pl.format(
        "{} is NaN or infinite at {} logged steps, first at step {}; {}",
        pl.when(has_loss).then(pl.lit("the loss")).otherwise(pl.lit("the gradient norm")),
        pl.when(has_loss).then("losses").otherwise("norms"),
        first,
        pl.when(pl.col("diverged_at_step").is_not_null())
        .then(pl.format("from step {} to the last step {} it stays so", "diverged_at_step", "last_step"))
        .otherwise(pl.lit("it is finite again afterwards")),
    )
    return at_line(affected.with_columns(first=first, text=text), steps, "first")


def _reported(lines: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """One row per run with lines that report a NaN; where one is an exception, the run diverged there."""
    if lines.is_empty():
        return lines.with_columns(diverged_at_step=pl.lit(None, pl.Int64))
    is_counter = pl.col("text").str.contains("number of nan iterations", literal=True)
    first = (
        lines.with_columns(is_counter=is_counter, lines=pl.len().over("run_id", is_counter))
        .sort("run_id", "is_counter", "line_no")
        .unique("run_id", keep="first", maintain_order=True)
    )
    last = steps.group_by("run_id").agg(last_step=pl.col("step").max())
    stated = pl.col("text").str.extract(r"\biteration:? +(\d+)").cast(pl.Int64, strict=False)
    return first.join(last, on="run_id", how="left", maintain_order="left").with_columns(
        diverged_at_step=pl.when(~pl.col("is_counter")).then(pl.coalesce(stated, "last_step")),
        text=pl.when("is_counter")
        .then(pl.format("{} step lines count iterations with NaN, first: {}", "lines", "text"))
        .otherwise("text"),
    )


def _rising(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per run whose loss rose: the line from which it stayed up, `text` and `diverged_at_step`."""
    found = []
    for begin, end in _ends_up(steps):
        if rise := _rise(steps["loss"][begin:end]):
            facts = steps[begin + rise.row].with_columns(last_step=pl.lit(steps["step"][begin + rise.last_row]))
            found.append(
                facts.with_columns(best=pl.lit(rise.best), last_y=pl.lit(rise.last_y), limit=pl.lit(rise.limit))
            )
    if not found:
        return steps.clear().with_columns(diverged_at_step=pl.lit(None, pl.Int64), text=pl.lit(None, pl.String))
    return pl.concat(found).with_columns(
        diverged_at_step=pl.col("step"),
        text=pl.format(
            "the loss (median of {} logged steps) rose from its best {} by step {} and is {} at the last step {}; "
            "it stayed above {}",
            pl.lit(DIVERGENCE_MEDIAN_STEPS),
            pl.col("best").round(3),
            "step",
            pl.col("last_y").round(3),
            "last_step",
            pl.col("limit").round(3),
        ),
    )


def _ends_up(steps: pl.DataFrame) -> list[tuple[int, int]]:
    """First row, and the row behind the last, of each run that may be up at its end.

    Such a run is up by at least RISE_NATS there, and no best is below the least loss.
    """
    loss = pl.col("loss")
    finite = loss.filter(loss.is_finite())
    figures = of_runs(
        steps,
        rows=first(pl.col(ROWS)),
        n=total(loss.is_finite()),
        least=least(finite),
        last=last_of(finite, DIVERGENCE_MEDIAN_STEPS, pl.Expr.median),
    ).with_columns(end=pl.col("rows").cum_sum())
    is_up = (pl.col("n") >= DIVERGENCE_MIN_STEPS) & (pl.col("last") > pl.col("least") + DIVERGENCE_RISE_NATS)
    return list(figures.filter(is_up).select(begin=pl.col("end") - pl.col("rows"), end="end").iter_rows())


@dataclass(frozen=True)
class _Rise:
    """The first of the last losses of a run that are up: its row, and the best and the limit there; and the last one.

    `y` is the running median, as above.
    """

    row: int
    best: float
    limit: float
    last_row: int
    last_y: float


def _rise(losses: pl.Series) -> _Rise | None:
    """Where the losses of a run rose for good; slice by slice, so that a long run takes no more memory."""
    sigma = _noise(losses)
    window = DIVERGENCE_MEDIAN_STEPS - 1
    before, best, seen, since, last = pl.Series([], dtype=pl.Float64), np.inf, 0, None, None
    for begin in range(0, losses.len(), SLICE_ROWS):
        loss, rows = _finite(losses, begin)
        if not rows.size:
            continue
        known = pl.concat([before, loss])
        y = known.rolling_median(DIVERGENCE_MEDIAN_STEPS, min_samples=1)[before.len() :].to_numpy()
        bests = np.minimum.accumulate(np.append(best, y))[1:]
        rises = np.maximum(np.maximum(DIVERGENCE_SIGMAS * sigma, DIVERGENCE_RISE_NATS), DIVERGENCE_RISE_SHARE * bests)
        is_up = (y > bests + rises) & (bests > 0)
        down = np.flatnonzero(~is_up)
        first = int(down[-1]) + 1 if down.size else 0
        if (down.size or since is None) and first < rows.size:
            since = seen + first, int(rows[first]), float(bests[first]), float((bests + rises)[first])
        elif down.size:
            since = None
        last = int(rows[-1]), float(y[-1])
        seen, best, before = seen + rows.size, bests[-1], known.tail(window)
    if since is None or last is None or seen - since[0] < DIVERGENCE_LAST_STEPS:
        return None
    return _Rise(*since[1:], *last)


def _noise(losses: pl.Series) -> float:
    """Noise of a single logged loss: exact for up to NOISE_STEPS of them, else from as many, drawn evenly."""
    every, drawn, before = -(-losses.len() // NOISE_STEPS), [], pl.Series([], dtype=pl.Float64)
    for begin in range(0, losses.len(), SLICE_ROWS):
        known = pl.concat([before, _finite(losses, begin)[0]])
        drawn.append(np.abs(np.diff(known.to_numpy()))[::every])
        before = known.tail(1)
    return float(np.median(np.concatenate(drawn))) * _TO_SIGMA


def _finite(losses: pl.Series, begin: int) -> tuple[pl.Series, np.ndarray[Any, np.dtype[np.int64]]]:
    """The finite losses of a slice, and their rows."""
    part = losses[begin : begin + SLICE_ROWS]
    is_finite = part.is_finite().fill_null(value=False)
    return part.filter(is_finite), np.flatnonzero(is_finite.to_numpy()) + begin
