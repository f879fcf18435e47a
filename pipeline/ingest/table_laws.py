"""The laws of a table, from its definition in `schemas`, as expressions and as a pandera schema.

Most batches break none, which one query over the expressions finds in milliseconds. pandera, which names the rows and
values of those that do, takes a second to load and a tenth of a second per table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Table

if TYPE_CHECKING:
    import pandera.polars as pa
    from pandera.api.polars.types import PolarsData

REPEAT = "repeats the key of an earlier row"
"""Begins the message of a repeated key, by which `validate` knows it."""


@dataclass(frozen=True)
class Law:
    """What holds in every row: true, or NULL where something is unknown."""

    name: str
    holds: pl.Expr
    message: str

    def check(self) -> pa.Check:
        """The same for pandera, which passes over NULL."""
        import pandera.polars as pa

        def holds(data: PolarsData) -> pl.LazyFrame:
            return data.lazyframe.select(self.holds)

        return pa.Check(holds, name=self.name, error=self.message)


def is_faultless(table: Table, typed: pl.DataFrame) -> bool:
    """Whether rows in the table's types break none of its laws."""
    return all(typed.select(_verdicts(table)).row(0))


@cache
def pandera_schema(table: Table) -> pa.DataFrameSchema:
    """The pandera schema of a table: types, vocabularies, bounds, required columns, rules, unique key.

    A repeated key fails from its second row on, so that the first one can be kept.
    """
    import pandera.polars as pa

    columns = {
        column.name: pa.Column(
            column.dtype,
            checks=[law.check() for law in _column_laws(column)],
            nullable=column.name not in table.required,
        )
        for column in table.columns
    }
    checks = [law.check() for law in _row_laws(table)]
    return pa.DataFrameSchema(columns, checks=checks, strict=True, ordered=True, name=table.name)


@cache
def _verdicts(table: Table) -> list[pl.Expr]:
    """One value per law: whether all rows keep it."""
    laws = [law.holds for column in table.columns for law in _column_laws(column)]
    laws += [law.holds for law in _row_laws(table)]
    laws += [pl.col(name).is_not_null() for name in table.required]
    return [holds.all(ignore_nulls=True).alias(str(number)) for number, holds in enumerate(laws)]


def _column_laws(column: Column) -> Iterator[Law]:
    value = pl.col(column.name)
    if column.words and column.other_words:
        yield Law("word", value.str.contains(f"^(?:{column.other_words})$"), "must be a name of small letters")
    elif column.words:
        yield Law("word", value.is_in(list(column.words)), f"must be one of: {', '.join(column.words)}")
    if column.minimum is not None:
        yield Law("minimum", value >= column.minimum, f"must be at least {column.minimum:g}")
    if column.dtype == pl.Float64 and column.finite:
        yield Law("finite", value.is_finite(), "must be finite")
    if column.positive:
        yield Law("positive", value > 0, "must be above 0")


def _row_laws(table: Table) -> Iterator[Law]:
    for rule in table.rules:
        yield Law(rule.name, rule.holds, rule.message)
    # Not pandera's own `unique`: that one fails the first row of a key as well.
    key = table.primary_key
    yield Law("unique_key", pl.struct(key).is_first_distinct(), f"{REPEAT} ({', '.join(key)})")
