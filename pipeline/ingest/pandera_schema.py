"""The pandera schema of a table, from its definition in `schemas`.

pandera takes a second to load, so it is imported where it is used: a query or the dashboard should not pay for it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Rule, Table

if TYPE_CHECKING:
    import pandera.polars as pa
    from pandera.api.polars.types import PolarsData

REPEAT = "repeats the key of an earlier row"
"""Begins the message of a repeated key; `validate` tells it from other failures by that."""


@cache
def pandera_schema(table: Table) -> pa.DataFrameSchema:
    """The pandera schema of a table: types, vocabularies, bounds, required columns, rules, unique key.

    Bounds, vocabularies and rules pass over NULL. A repeated key fails from its second row on, so that the first one
    can be kept.
    """
    import pandera.polars as pa

    columns = {
        column.name: pa.Column(column.dtype, checks=_column_checks(column), nullable=column.name not in table.required)
        for column in table.columns
    }
    # The key is not checked by pandera's own `unique`: that one fails the first row of a key as well.
    checks = [*map(_rule_check, table.rules), _key_check(table.primary_key)]
    return pa.DataFrameSchema(columns, checks=checks, strict=True, ordered=True, name=table.name)


def _column_checks(column: Column) -> list[pa.Check]:
    import pandera.polars as pa

    checks = []
    if column.words and column.other_words:
        checks.append(pa.Check.str_matches(f"^(?:{column.other_words})$", error="must be a name of small letters"))
    elif column.words:
        checks.append(pa.Check.isin(list(column.words), error=f"must be one of: {', '.join(column.words)}"))
    if column.minimum is not None:
        checks.append(pa.Check.ge(column.minimum, error=f"must be at least {column.minimum:g}"))
    if column.dtype == pl.Float64 and column.finite:
        checks.append(pa.Check(_is_finite, error="must be finite"))
    if column.positive:
        checks.append(pa.Check.gt(0, error="must be above 0"))
    return checks


def _is_finite(data: PolarsData) -> pl.LazyFrame:
    return data.lazyframe.select(pl.col(data.key).is_finite())


def _rule_check(rule: Rule) -> pa.Check:
    import pandera.polars as pa

    def holds(data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(rule.holds)

    return pa.Check(holds, name=rule.name, error=rule.message)


def _key_check(key: tuple[str, ...]) -> pa.Check:
    import pandera.polars as pa

    def is_first(data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.struct(key).is_first_distinct())

    return pa.Check(is_first, name="unique_key", error=f"{REPEAT} ({', '.join(key)})")
