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

import polars as pl
import polars.selectors as cs

from sweepscope.pipeline.logs.diagnostics.finding import FINDING, at_line, finding
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
        diverged.group_by("run_id").agg(pl.col("diverged_at_step").min()),
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
    loss = pl.col("loss")
    finite = loss.filter(loss.is_finite())
    # A run that is up at its end is up by at least RISE_NATS, and no best is below the least loss.
    ends_up = (finite.len() >= DIVERGENCE_MIN_STEPS) & (
        finite.tail(DIVERGENCE_MEDIAN_STEPS).median() > finite.min() + DIVERGENCE_RISE_NATS
    )
    suspects = steps.group_by("run").agg(ends_up=ends_up).filter("ends_up")["run"]
    if suspects.is_empty():
        return steps.clear().with_columns(diverged_at_step=pl.lit(None, pl.Int64), text=pl.lit(None, pl.String))
    rows = steps.filter(pl.col("run").is_in(suspects.implode()) & loss.is_finite())
    rows = rows.with_columns(
        y=loss.rolling_median(DIVERGENCE_MEDIAN_STEPS, min_samples=1).over("run"),
        sigma=(loss - loss.shift(1)).abs().median().over("run") * _TO_SIGMA,
        row=pl.int_range(pl.len()).over("run"),
        rows=pl.len().over("run"),
    )
    rows = rows.with_columns(best=pl.col("y").cum_min().over("run"))
    rise = pl.max_horizontal(
        DIVERGENCE_SIGMAS * pl.col("sigma"), pl.lit(DIVERGENCE_RISE_NATS), DIVERGENCE_RISE_SHARE * pl.col("best")
    )
    rows = rows.with_columns(limit=pl.col("best") + rise)
    is_up = (pl.col("y") > pl.col("limit")) & (pl.col("best") > 0)
    up_from = pl.col("row").filter(~is_up).max().over("run") + 1
    up = rows.with_columns(up_from=up_from).filter(
        (pl.col("row") >= pl.col("up_from")) & (pl.col("rows") - pl.col("up_from") >= DIVERGENCE_LAST_STEPS)
    )
    ends = up.group_by("run_id").agg(last_step=pl.col("step").last(), last_y=pl.col("y").last())
    begun = up.unique("run_id", keep="first", maintain_order=True).join(ends, on="run_id", maintain_order="left")
    return begun.with_columns(
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
