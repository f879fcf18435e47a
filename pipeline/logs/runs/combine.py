"""Expressions over printed values, for `CombinedSetting`."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.setting_precedence import NOTHING


def is_true(name: str) -> pl.Expr:
    """Whether a printed value says yes; NULL where nothing was printed."""
    return pl.col(name).str.to_lowercase().is_in(["true", "1"])


def is_said(name: str) -> pl.Expr:
    """Whether a printed value names something: not absent, None or empty."""
    return pl.col(name).is_not_null() & ~pl.col(name).is_in(NOTHING)


def whole(name: str) -> pl.Expr:
    """A printed whole number; NULL for None and for anything else."""
    return pl.col(name).cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)


def quotient(all_: pl.Expr, each: pl.Expr) -> pl.Expr:
    """How many times `each` is in `all_`; NULL where that is no whole number, so that one of them is not what it seems.

    >>> pl.select(quotient(pl.lit(8), pl.lit(2))).item(), pl.select(quotient(pl.lit(8), pl.lit(3))).item()
    (4, None)
    """
    return pl.when(all_ % each == 0).then(all_ // each)
