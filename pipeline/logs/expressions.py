"""Expressions over printed values (text columns) that several dialects state their combined settings with."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sweepscope.pipeline.logs.facts import NOTHING


def is_true(name: str) -> pl.Expr:
    """Whether a printed value means yes; NULL where nothing was printed."""
    return pl.col(name).str.to_lowercase().is_in(["true", "1"])


def has_value(name: str) -> pl.Expr:
    """Whether a printed value is more than None or an empty text; false where nothing was printed."""
    return pl.col(name).is_not_null() & ~pl.col(name).is_in(NOTHING)


def whole(name: str) -> pl.Expr:
    """A printed whole number; NULL for None and for anything else."""
    return pl.col(name).cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)


def quotient(all_: pl.Expr, each: pl.Expr) -> pl.Expr:
    """How many times `each` is in `all_`; NULL where that is no whole number, so that one of the two is misread.

    >>> pl.select(quotient(pl.lit(8), pl.lit(2))).item(), pl.select(quotient(pl.lit(8), pl.lit(3))).item()
    (4, None)
    """
    return pl.when(all_ % each == 0).then(all_ // each)


def words(name: str, word_of: Mapping[str, str]) -> pl.Expr:
    """The word of ours for a printed one; NULL for any other."""
    return pl.col(name).replace_strict(dict(word_of), default=None, return_dtype=pl.String)


def cases(*branches: tuple[pl.Expr, pl.Expr | str | int]) -> pl.Expr:
    """The value of the first branch whose condition holds, NULL where none does. A text is a value, no column's name.

    >>> pl.select(cases((pl.lit(2) > 3, "large"), (pl.lit(2) > 1, "medium"))).item()
    'medium'
    """
    value: pl.Expr = pl.lit(None)
    for condition, result in reversed(branches):
        then = result if isinstance(result, pl.Expr) else pl.lit(result)
        value = pl.when(condition).then(then).otherwise(value)
    return value


def switched(name: str, on: str | int, off: str | int) -> pl.Expr:
    """`on` where the printed value of a switch means yes, `off` where it means no; NULL where nothing was printed."""
    return cases((is_true(name), on), (~is_true(name), off))
