"""Where the peak goes: from 100 % of an accelerator's peak down to the MFU of a step, one loss after the other.

Every loss is a share of the step's time. The step is the measured one where there is one, else the estimated one; what
a measured step took beyond (or short of) its estimate is "unexplained", and negative for a run that beat it. Losses and
the MFU that is left add up to 1 by construction: at_peak + sum(losses) = step, where at_peak = est_mfu x est_step_time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import polars as pl


class Term(NamedTuple):
    """One loss: its name, its label, and the parts of the estimated step that it adds up."""

    name: str
    label: str
    parts: tuple[str, ...]


KERNELS: Final = "kernels"
UNEXPLAINED: Final = "unexplained"
TERMS: Final = (
    Term(KERNELS, "Kernels below peak", ("linear", "attention", "head")),
    Term("elementwise", "Norms, activations, launches", ("elementwise",)),
    Term("recompute", "Recomputation", ("recompute",)),
    Term("tp", "TP communication", ("tp",)),
    Term("cp", "CP communication", ("cp",)),
    Term("ep", "Expert exchange", ("ep",)),
    Term("dp", "DP communication", ("dp",)),
    Term("pp", "PP transfers", ("pp",)),
    Term("stall", "Launch stalls", ("stall",)),
    Term("bubble", "Pipeline bubble", ("bubble",)),
    Term("optimizer", "Optimizer, accumulation", ("optimizer",)),
    Term("rest", "Fixed cost", ("rest",)),
    Term("stragglers", "Slowest node", ("stragglers",)),
)
"""Losses in the order of display. Kernels lose what matrix products, attention and the head take beyond the
time that the model's FLOPs need at peak; communication is what compute does not hide."""

WATERFALL: Final = pl.Schema(
    {
        "row": pl.Int64,
        "position": pl.Int64,
        "term": pl.String,
        "label": pl.String,
        "seconds": pl.Float64,
        "share": pl.Float64,
        "before": pl.Float64,
        "after": pl.Float64,
    }
)
"""`share` of the step, `before` and `after` it the level between 1 (peak) and the MFU."""


def waterfall(frame: pl.DataFrame, *, measured: str | None = "step_time_s") -> pl.DataFrame:
    """One row per estimated row of `frame` and term, in the columns of WATERFALL; `row` is the index in `frame`.

    `frame` has est_mfu, est_step_time_s and est_time_*_s, as `estimate_frame`, `search` and the table `estimates` have.
    A row whose column `measured` is positive is compared with that step and ends with "unexplained"; other rows end at
    their estimate. Rows without an estimate are left out. The last `after` of a row is its MFU by the FLOPs that the
    estimate counts.
    """
    at_peak = pl.col("est_mfu") * pl.col("est_step_time_s")
    known = frame.with_row_index("row").filter(
        pl.col("est_step_time_s").is_not_null() & pl.col("est_mfu").is_not_null()
    )
    actual = pl.lit(None, pl.Float64)
    if measured is not None and measured in frame.columns:
        actual = pl.when(pl.col(measured) > 0).then(pl.col(measured))
    terms = [
        (sum((pl.col(f"est_time_{part}_s") for part in term.parts[1:]), pl.col(f"est_time_{term.parts[0]}_s")), term)
        for term in TERMS
        if {f"est_time_{part}_s" for part in term.parts} <= {*frame.columns}  # estimates of older versions have fewer
    ]
    columns = [
        (seconds - at_peak if term.name == KERNELS else seconds).cast(pl.Float64).alias(term.name)
        for seconds, term in terms
    ]
    labels = {term.name: term.label for term in TERMS} | {UNEXPLAINED: "Unexplained"}
    names = [name for name in labels if name == UNEXPLAINED or name in {term.name for _, term in terms}]
    return (
        known.select(
            pl.col("row").cast(pl.Int64),
            pl.coalesce(actual, "est_step_time_s").alias("step"),
            *columns,
            (actual - pl.col("est_step_time_s")).alias(UNEXPLAINED),
        )
        .unpivot(index=["row", "step"], on=names, variable_name="term", value_name="seconds")
        .drop_nulls("seconds")
        .with_columns(
            position=pl.col("term").replace_strict(names, range(len(names)), return_dtype=pl.Int64),
            label=pl.col("term").replace_strict(labels, return_dtype=pl.String),
            share=pl.col("seconds") / pl.col("step"),
        )
        .sort("row", "position")
        .with_columns(after=1.0 - pl.col("share").cum_sum().over("row"))
        .with_columns(before=pl.col("after") + pl.col("share"))
        .select(WATERFALL.names())
        .cast(WATERFALL)
    )
