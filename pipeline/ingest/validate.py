"""Frame and table definition in, good rows and rejects out. Pure: no files, no store.

pandera is the only judge; this module builds its schema from `schemas.core.table.Table`, turns its failure cases into
rows of `rejects`, and never loses a row: every input row is either in `valid` or named in `rejects`.
A new kind of check belongs in `schemas` (a column's constraint, a table's rule), not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Rule, Table
from sweepscope.schemas.tables.ledger import REJECTS

if TYPE_CHECKING:
    import pandera.polars as pa
    from pandera.api.polars.types import PolarsData

RAW_LIMIT = 2_000
_ROW = "__row"
_EMPTY = "must not be empty"
_REPEAT = "repeats the key of an earlier row"
_FILE_COLUMNS = ("source_path", "path", "file")
_FAILURES = pl.Schema({_ROW: pl.UInt32, "column": pl.String, "reason": pl.String})


@dataclass(frozen=True)
class Validated:
    """Rows that satisfy their table, and the others as rows of `rejects`, one per row and broken constraint."""

    valid: pl.DataFrame
    rejects: pl.DataFrame


@cache
def pandera_schema(table: Table) -> pa.DataFrameSchema:
    """The pandera schema of a table: types, vocabularies, bounds, required columns, row rules, unique key.

    Bounds, vocabularies and rules pass over NULL; NaN is a value (a diverged loss is a fact, not a fault).
    A repeated key fails from its second row on, so that the first one can be kept.
    """
    # Imported late: pandera takes a second to load, which a query or the dashboard should not pay.
    import pandera.polars as pa

    checks: dict[str, list[pa.Check]] = {column.name: _column_checks(column) for column in table.columns}
    for rule in table.rules:
        checks[rule.keep.meta.root_names()[0]].append(_rule_check(rule))
    # A check on one key column, not pandera's own `unique`: that one fails the first row of a key as well.
    checks[table.primary_key[0]].append(_key_check(table.primary_key))
    columns = {
        column.name: pa.Column(column.dtype, checks=checks[column.name], nullable=column.name not in table.required)
        for column in table.columns
    }
    return pa.DataFrameSchema(columns, strict=True, ordered=True, name=table.name)


def validate(table: Table, frame: pl.DataFrame) -> Validated:
    """Split `frame` into the rows that satisfy `table` and rejects that say what is wrong with the others.

    A column that is missing becomes NULL; a value that its column's type cannot hold rejects its row.

    Args:
        table: the definition to hold the rows against.
        frame: any rows; column order is free.

    Raises:
        ValueError: `frame` has a column that the table does not know. That is a fault in the caller, and dropping
            the column would lose data silently.
    """
    unknown = sorted(set(frame.columns) - set(table.column_names))
    if unknown:
        raise ValueError(f"table {table.name} has no column {', '.join(unknown)}: add it to schemas/ or drop it first")
    if frame.is_empty():
        return Validated(table.empty(), REJECTS.empty())
    typed, misfits = _cast(table, frame)
    schema = pandera_schema(table)
    failures = _failures(schema, typed)
    if failures.is_empty() and misfits.is_empty():
        return Validated(typed, REJECTS.empty())
    # A row whose key repeats that of a bad row may be the good one of the two: judge keys among the good rows only.
    failures = failures.filter(pl.col("reason").str.starts_with(_REPEAT).not_())
    failures = pl.concat([misfits, failures.join(misfits, on=[_ROW, "column"], how="anti")])
    rows = pl.int_range(typed.height, dtype=pl.UInt32, eager=True)
    good = rows.filter(~rows.is_in(failures[_ROW].implode()))
    repeats = _failures(schema, typed[good])
    repeats = repeats.with_columns(good[repeats[_ROW]].alias(_ROW))
    failures = pl.concat([failures, repeats]).sort(_ROW, "column", "reason", maintain_order=True)
    return Validated(typed.filter(~rows.is_in(failures[_ROW].implode())), _rejects(table, frame, failures))


def merge_rejects(rejects: pl.DataFrame) -> pl.DataFrame:
    """Rejects with one row per key; where several were alike, the first one's raw text and their number remain.

    >>> twice = pl.DataFrame({"file": ["a.log"] * 2, "line_no": [7] * 2, "table": ["steps"] * 2,
    ...                       "column": [None] * 2, "reason": ["odd"] * 2, "raw": ["x", "y"]})
    >>> merge_rejects(twice).select("reason", "raw").rows()
    [('odd (2 times)', 'x')]
    """
    key = list(REJECTS.primary_key)
    merged = REJECTS.conform(rejects).group_by(key, maintain_order=True).agg(pl.first("raw"), times=pl.len())
    noted = pl.when(pl.col("times") > 1).then(pl.format("{} ({} times)", "reason", "times")).otherwise("reason")
    return merged.with_columns(reason=noted).select(REJECTS.column_names)


def _column_checks(column: Column) -> list[pa.Check]:
    import pandera.polars as pa

    checks = []
    if column.words and column.other_words:
        checks.append(pa.Check.str_matches(f"^(?:{column.other_words})$", error="must be a name of small letters"))
    elif column.words:
        checks.append(pa.Check.isin(list(column.words), error=f"must be one of: {', '.join(column.words)}"))
    if column.minimum is not None:
        checks.append(pa.Check.ge(column.minimum, error=f"must be at least {column.minimum:g}"))
    if column.positive:
        checks.append(pa.Check.gt(0, error="must be above 0"))
    return checks


def _rule_check(rule: Rule) -> pa.Check:
    import pandera.polars as pa

    def holds(data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(rule.keep)

    return pa.Check(holds, name=rule.name, error=rule.message)


def _key_check(key: tuple[str, ...]) -> pa.Check:
    import pandera.polars as pa

    def is_first(data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.struct(key).is_first_distinct())

    return pa.Check(is_first, name="unique_key", error=f"{_REPEAT} ({', '.join(key)})")


def _cast(table: Table, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`frame` in the table's types and order, and the values that do not fit as (row, column, reason)."""
    columns, misfits = [], []
    for column in table.columns:
        values = frame[column.name] if column.name in frame.columns else pl.repeat(None, frame.height, eager=True)
        try:
            typed = values.cast(column.dtype, strict=False)
        except (pl.exceptions.InvalidOperationError, pl.exceptions.ComputeError):
            # No cast exists between the two types (text to a timestamp): none of the values fits.
            typed = pl.repeat(None, frame.height, dtype=column.dtype, eager=True)
        lost = values.is_not_null() & typed.is_null()
        if values.dtype.is_float() and typed.dtype.is_integer():
            lost |= (typed.cast(pl.Float64) != values).fill_null(False)  # 2.5 would become 2 without a word
        columns.append(typed.alias(column.name))
        if lost.any():
            misfits.append(_misfits(column.name, values, typed.dtype, lost.arg_true()))
    return pl.DataFrame(columns), pl.concat([_FAILURES.to_frame(), *misfits])


def _misfits(name: str, values: pl.Series, dtype: pl.DataType, rows: pl.Series) -> pl.DataFrame:
    texts = [_quoted(value) for value in values[rows].to_list()]
    reasons = [f"cannot be read as {dtype}, got {text}" for text in texts]
    return pl.DataFrame({_ROW: rows, "column": [name] * len(rows), "reason": reasons}, schema=_FAILURES)


def _quoted(value: object) -> str:
    return repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]}..."


def _failures(schema: pa.DataFrameSchema, typed: pl.DataFrame) -> pl.DataFrame:
    """What pandera holds against `typed`, as (row, column, reason), one row per row and broken constraint."""
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaErrors

    # PANDERA_VALIDATION_* in the environment could turn the checks off; nothing may enter the lake unchecked.
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        try:
            schema.validate(typed, lazy=True)
        except SchemaErrors as error:
            cases: pl.DataFrame = error.failure_cases
            if cases["index"].null_count():
                raise  # not about a row: the frame itself does not have the table's shape
            check, got = pl.col("check"), pl.col("failure_case")
            told = pl.format("{}, got {}", check, got.str.slice(0, 80))
            is_plain = check.str.starts_with("must ") & got.is_not_null()
            reason = pl.when(check == "not_nullable").then(pl.lit(_EMPTY)).when(is_plain).then(told).otherwise(check)
            return cases.select(pl.col("index").cast(pl.UInt32).alias(_ROW), "column", reason.alias("reason"))
    return _FAILURES.to_frame()


def _rejects(table: Table, frame: pl.DataFrame, failures: pl.DataFrame) -> pl.DataFrame:
    """Rows of `rejects` for failures (row, column, reason) of `frame`, which still holds the values as they came."""
    rows = failures[_ROW]
    bad = frame[rows]
    file_column = next((name for name in _FILE_COLUMNS if name in table.column_names), table.replaced_by)
    files = bad[file_column] if file_column in bad.columns else pl.repeat(None, bad.height, eager=True)
    lines = bad["line_no"] if "line_no" in bad.columns else pl.repeat(None, bad.height, eager=True)
    lines = lines.cast(pl.Int64, strict=False)
    return merge_rejects(
        pl.DataFrame(
            {
                "file": files.cast(pl.String).fill_null(f"(a row of {table.name} without {file_column})"),
                "line_no": lines.set(lines < 1, None),  # may itself be what is wrong with the row
                "table": pl.repeat(table.name, bad.height, eager=True),
                "column": failures["column"],
                "reason": failures["reason"],
                "raw": bad.select(pl.struct(pl.all()).struct.json_encode().str.slice(0, RAW_LIMIT)).to_series(),
            },
            schema=REJECTS.polars_schema,
        )
    )
