"""What a column is, and short constructors for each kind of column. Nothing here knows a concrete column."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

DataType = pl.DataType | type[pl.DataType]


@dataclass(frozen=True)
class Column:
    """One column: `unit` is required for numbers ("count", "id" and "fraction" are units here).

    `words` are all that it may hold, unless `other_words`, an expression, says what further words look like.
    """

    name: str
    dtype: DataType
    description: str
    unit: str | None = None
    words: dict[str, str] | None = field(default=None, hash=False)
    other_words: str | None = None
    minimum: float | None = None
    positive: bool = False


def text_column(
    name: str, description: str, words: dict[str, str] | None = None, *, other_words: str | None = None
) -> Column:
    """Text, or a vocabulary where `words` are given: a closed one without `other_words`."""
    return Column(name, pl.String, description, words=words, other_words=other_words)


def int_column(name: str, unit: str, description: str, minimum: float | None = 0) -> Column:
    """A whole number with its unit; not negative unless `minimum` says otherwise."""
    return Column(name, pl.Int64, description, unit=unit, minimum=minimum)


def float_column(
    name: str, unit: str, description: str, *, minimum: float | None = None, positive: bool = False
) -> Column:
    """A number with its unit."""
    return Column(name, pl.Float64, description, unit=unit, minimum=minimum, positive=positive)


def bool_column(name: str, description: str) -> Column:
    """A flag."""
    return Column(name, pl.Boolean, description)


def time_column(name: str, description: str) -> Column:
    """A time as logged, without a zone."""
    return Column(name, pl.Datetime("us"), description)
