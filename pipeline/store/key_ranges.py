"""Ranges of a table's key that hold about as many rows each, so that sorting one of them takes little memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import polars as pl

from sweepscope.schemas.core.ddl import quote
from sweepscope.schemas.core.table import Table


@dataclass(frozen=True)
class KeyRange:
    """Rows for which an SQL condition over the key holds; its parameters have names of their own."""

    condition: str = "true"
    parameters: Mapping[str, object] = field(default_factory=dict)


def key_ranges(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    query: str,
    parameters: Mapping[str, object],
    *,
    rows_at_most: int,
) -> list[KeyRange]:
    """Ranges in the order of the key; every row is in exactly one.

    A value of the first column of the key with more rows than a range has is divided by the second column, if that is a
    number: approximately, since finding exact quantiles would sort the rows.

    Args:
        table: whose columns `query` gives.
        query: SELECT of the rows.
        parameters: of the query.
        rows_at_most: of a range, more or less.
    """
    first, *others = table.primary_key
    second = next((name for name in others[:1] if _is_number(table, name)), None)
    source = f"({query}) AS kept"
    counted = f"SELECT {quote(first)}, count(*) FROM {source} GROUP BY ALL ORDER BY ALL NULLS LAST"
    bounds: list[tuple[object, object]] = []  # from which values of the two columns on a new range begins
    rows = 0
    for value, count in connection.execute(counted, parameters).fetchall():
        if value is None:  # last, whichever range that is
            continue
        if rows and rows + count > rows_at_most:
            bounds.append((value, None))
            rows = 0
        rows += count
        if rows > rows_at_most and second:
            parts = -(-rows // rows_at_most)
            shares = ", ".join(str(part / parts) for part in range(1, parts))
            cut = f"SELECT approx_quantile({quote(second)}, [{shares}]) FROM {source} WHERE {quote(first)} = $value"
            ((cuts,),) = connection.execute(cut, {**parameters, "value": value}).fetchall()
            bounds += [(value, one) for one in sorted(set(cuts or ()))]
            rows //= parts
    return _between(first, second, bounds)


def _is_number(table: Table, name: str) -> bool:
    column = next(column for column in table.columns if column.name == name)
    return column.dtype in (pl.Int64, pl.Float64)


def _between(first: str, second: str | None, bounds: Sequence[tuple[object, object]]) -> list[KeyRange]:
    """Ranges below, between and above some bounds. Where a value is unknown, the row is behind all bounds."""
    found = []
    for number in range(len(bounds) + 1):
        begin = _is_behind(first, second, "begin", bounds[number - 1]) if number else KeyRange()
        end = _is_behind(first, second, "end", bounds[number]) if number < len(bounds) else KeyRange("false")
        found.append(KeyRange(f"{begin.condition} AND NOT {end.condition}", {**begin.parameters, **end.parameters}))
    return found


def _is_behind(first: str, second: str | None, name: str, bound: tuple[object, object]) -> KeyRange:
    """Rows at and behind one bound."""
    value, cut = bound
    key = quote(first)
    if cut is None or second is None:
        return KeyRange(f"(({key} >= ${name}) IS NOT FALSE)", {name: value})
    is_cut_off = f"{key} = ${name} AND (({quote(second)} >= ${name}_cut) IS NOT FALSE)"
    return KeyRange(f"(({key} > ${name} OR {is_cut_off}) IS NOT FALSE)", {name: value, f"{name}_cut": cut})
