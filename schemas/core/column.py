"""A column, and short constructors for each kind of column. Nothing here knows a concrete column."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

DataType = pl.DataType | type[pl.DataType]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        unit: required for numbers; "count", "id" and "fraction" are units here.
        words: vocabulary with meanings; a value outside it is invalid, unless `other_words` matches it.
        other_words: regular expression for further words.
        minimum: smallest valid value.
        positive: whether values must be above 0.
        finite: whether NaN and infinities are invalid.
    """

    name: str
    dtype: DataType
    description: str
    unit: str | None = None
    words: dict[str, str] | None = field(default=None, hash=False)
    other_words: str | None = None
    minimum: float | None = None
    positive: bool = False
    finite: bool = True


def text(name: str, description: str, words: dict[str, str] | None = None, *, other_words: str | None = None) -> Column:
    """Text column, or a vocabulary where `words` are given."""
    return Column(name, pl.String, description, words=words, other_words=other_words)


def integer(name: str, unit: str, description: str, minimum: float | None = 0) -> Column:
    """Whole number column, at least 0 unless `minimum` differs."""
    return Column(name, pl.Int64, description, unit=unit, minimum=minimum)


def number(
    name: str, unit: str, description: str, *, minimum: float | None = None, positive: bool = False, finite: bool = True
) -> Column:
    """Floating point column."""
    return Column(name, pl.Float64, description, unit=unit, minimum=minimum, positive=positive, finite=finite)


def flag(name: str, description: str) -> Column:
    """Boolean column."""
    return Column(name, pl.Boolean, description)


def time(name: str, description: str) -> Column:
    """Timestamp column, as logged, without a time zone."""
    return Column(name, pl.Datetime("us"), description)
