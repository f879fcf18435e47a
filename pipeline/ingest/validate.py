"""Rows that satisfy their table, and rejects for all else. Pure: no files, no store.

pandera judges what breaks a law of `table_laws`; this module turns its failure cases into rows of `rejects`. A bad
value becomes NULL and its row is kept; a row without a usable key is left out. A new kind of check belongs in `schemas`
(a column's constraint, a table's rule), not here.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.ingest.table_laws import REPEAT, is_faultless, pandera_schema
from sweepscope.pipeline.io.spill import SLICE_ROWS, is_large, release
from sweepscope.schemas.core.table import Rule, Table
from sweepscope.schemas.tables.ledger import REJECTS
from sweepscope.schemas.vocab import REJECT_REASON_KEPT, REJECT_REASON_LEFT_OUT

RAW_LIMIT = 2_000
_ROW = "__row"
_EMPTY = "must not be empty"
_FILE_COLUMNS = ("source_path", "path", "file")
_FAILURES = pl.Schema({_ROW: pl.UInt32, "column": pl.String, "reason": pl.String})
"""Index of the row, column (NULL for a law between columns), and what is wrong."""


@dataclass(frozen=True)
class Validated:
    """Rows that satisfy their table, and one row of `rejects` per broken constraint."""

    valid: pl.DataFrame
    rejects: pl.DataFrame


def validate(table: Table, frame: pl.DataFrame) -> Validated:
    """The rows of `frame` in the table's columns, bad values NULL, and rejects that state what was wrong.

    A column that is missing becomes NULL. Left out are rows with a bad value in a column that may not be NULL, and rows
    that repeat a key; of rows with one key, the first without a bad value is kept, else the first.

    Args:
        table: the definition that the rows have to satisfy.
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
    if misfits.is_empty() and is_large(typed) and _is_faultless_in_slices(table, typed):
        return Validated(typed, REJECTS.empty())
    failures = _failures(table, typed)
    if failures.is_empty() and misfits.is_empty():
        return Validated(typed, REJECTS.empty())
    # One reject per value: what cannot be read is NULL already, and may be missed as a value of the key.
    values = pl.concat([misfits, failures.drop_nulls("column")]).unique([_ROW, "column"], maintain_order=True)
    is_key = pl.col("column").is_in([*table.primary_key, *table.required])
    without_key, bad = values.filter(is_key), values.filter(~is_key)
    rows = pl.int_range(typed.height, dtype=pl.UInt32, eager=True)
    rows = rows.filter(~rows.is_in(without_key[_ROW].implode()))
    if not values.is_empty():  # rules and keys are judged without the bad values, rows without any first
        typed = _without_values(typed, bad)
        rows = rows.gather(rows.is_in(bad[_ROW].implode()).arg_sort())
        failures = _failures(table, typed[rows])
        failures = failures.with_columns(rows[failures[_ROW]].alias(_ROW))
    is_repeat = pl.col("reason").str.starts_with(REPEAT)
    repeats = failures.filter(is_repeat).with_columns(column=pl.lit(table.primary_key[0]))
    bad = bad.join(repeats, on=_ROW, how="anti")  # the raw text of a repeated row has its values
    rejects = [
        _rejects(table, frame, pl.concat([without_key, repeats])),
        _rejects(table, frame, bad, prefix=REJECT_REASON_LEFT_OUT),
    ]
    for rule in table.rules:
        broken = _broken(rule, typed, failures.filter(reason=rule.message))
        if rule.empties:
            typed = _without_values(typed, broken)
        rejects.append(
            _rejects(table, frame, broken, prefix=REJECT_REASON_LEFT_OUT if rule.empties else REJECT_REASON_KEPT)
        )
    kept = rows.filter(~rows.is_in(repeats[_ROW].implode())).sort()
    return Validated(typed[kept], merge_rejects(pl.concat(rejects)))


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


def _failures(table: Table, typed: pl.DataFrame) -> pl.DataFrame:
    """What pandera finds wrong with `typed`, as `_FAILURES`: one row per row and broken constraint."""
    if is_faultless(table, typed):
        return _FAILURES.to_frame()
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaErrors

    # PANDERA_VALIDATION_* in the environment could turn the checks off; nothing may enter the lake unchecked.
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        try:
            pandera_schema(table).validate(typed, lazy=True)
        except SchemaErrors as error:
            cases: pl.DataFrame = error.failure_cases
            if cases["index"].null_count():
                raise  # not about a row: the frame itself does not have the table's shape
            check, got = pl.col("check"), pl.col("failure_case")
            with_value = pl.format("{}, got {}", check, got.str.slice(0, 80))
            return cases.select(
                pl.col("index").cast(pl.UInt32).alias(_ROW),
                pl.when(schema_context="Column").then("column"),
                reason=pl.when(check == "not_nullable")
                .then(pl.lit(_EMPTY))
                .when(check.str.starts_with("must ") & got.is_not_null())
                .then(with_value)
                .otherwise(check),
            )
    return _FAILURES.to_frame()


def _is_faultless_in_slices(table: Table, typed: pl.DataFrame) -> bool:
    """Whether every slice of a large frame passes by itself, and no key is in two of them; False where it is unsure."""
    if not _rises_in_groups(typed[list(table.primary_key)]):
        return False
    for rows in typed.iter_slices(SLICE_ROWS):
        if not is_faultless(table, rows):
            return False
        release()
    return True


def _rises_in_groups(keys: pl.DataFrame) -> bool:
    """Whether rows with the same first value are neighbours and their second value rises: then no key repeats."""
    if keys.width != 2 or not keys.dtypes[1].is_integer():
        return False
    first, second = (pl.col(name) for name in keys.columns)
    groups = keys[:1, 0].to_list()
    for start in range(0, keys.height, SLICE_ROWS):
        # With the row before, which is of the slice before.
        rows = keys[max(start - 1, 0) : start + SLICE_ROWS]
        is_risen = (second > second.shift(1)).fill_null(value=False)
        rows = rows.with_columns(begins=first.ne_missing(first.shift(1)), is_risen=is_risen)[1:]
        if not (rows["begins"] | rows["is_risen"]).all():
            return False
        groups += rows.filter("begins")[:, 0].to_list()
    return len(set(groups)) == len(groups)


def _broken(rule: Rule, typed: pl.DataFrame, failures: pl.DataFrame) -> pl.DataFrame:
    """Failures of one rule, with the names of its columns, and their values in the reason."""
    texts = [pl.col(name).cast(pl.String).fill_null("NULL") for name in rule.columns]
    got = typed[failures[_ROW]].select(pl.concat_str(texts, separator=", ")).to_series()
    reason = pl.format("{}, got {}", "reason", got)
    return failures.with_columns(column=pl.lit(", ".join(rule.columns)), reason=reason)


def _without_values(typed: pl.DataFrame, failures: pl.DataFrame) -> pl.DataFrame:
    """`typed` with NULL in the rows and columns that `failures` name."""
    rows = pl.int_range(typed.height, dtype=pl.UInt32, eager=True)
    cells = failures.with_columns(pl.col("column").str.split(", ")).explode("column")
    bad = {str(name): rows.is_in(group[_ROW].implode()) for (name,), group in cells.group_by("column")}
    return typed.with_columns(pl.when(~is_bad).then(pl.col(name)).alias(name) for name, is_bad in bad.items())


def _rejects(table: Table, frame: pl.DataFrame, failures: pl.DataFrame, *, prefix: str = "") -> pl.DataFrame:
    """Rows of `rejects` for `failures` in `frame`, which has the values as they came.

    `raw` is the whole row where the row is left out, else (with a `prefix` of the reason) the values concerned.
    """
    if failures.is_empty():
        return REJECTS.empty()
    parts = []
    for (columns,), group in failures.group_by("column", maintain_order=True):
        named = str(columns).split(", ") if prefix else frame.columns
        bad = frame[group[_ROW]]
        shown = bad.select(name for name in named if name in bad.columns)
        parts.append(group.with_columns(raw=shown.select(pl.struct(pl.all()).struct.json_encode()).to_series()))
    described = pl.concat(parts).sort(_ROW, "column", "reason", maintain_order=True)
    bad = frame[described[_ROW]]
    file_column = next((name for name in _FILE_COLUMNS if name in table.column_names), table.replaced_by)
    files = bad[file_column] if file_column in bad.columns else pl.repeat(None, bad.height, eager=True)
    lines = bad["line_no"] if "line_no" in bad.columns else pl.repeat(None, bad.height, eager=True)
    lines = lines.cast(pl.Int64, strict=False)
    return REJECTS.conform(
        described.select(
            file=files.cast(pl.String).fill_null(f"(a row of {table.name} without {file_column})"),
            line_no=lines.set(lines < 1, None),  # may itself be what is wrong with the row
            table=pl.lit(table.name),
            column="column",
            reason=pl.format("{}: {}", pl.lit(prefix), "reason") if prefix else "reason",
            raw=pl.col("raw").str.slice(0, RAW_LIMIT),
        )
    )
