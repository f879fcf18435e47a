"""Rows of frames as JSON: numbers as numbers, whatever their width."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import polars as pl


def as_json(frame: pl.DataFrame) -> str:
    """Rows as a JSON array of objects, every number a number.

    polars writes sums of integers (DuckDB's HUGEINT) and decimals as text, and what is no finite number as null, which
    is what an unknown value is. JSON has no such numbers, so they become the texts "NaN", "Infinity" and "-Infinity".
    """
    special = [column.name for column in frame if _needs_care(column)]
    if not special:
        return frame.write_json()
    rows = json.loads(frame.drop(special).write_json()) or [{} for _ in range(frame.height)]
    values = frame.select(special).to_dicts()
    merged = [
        {name: row[name] if name in row else _plain_value(given[name]) for name in frame.columns}
        for row, given in zip(rows, values, strict=True)
    ]
    return json.dumps(merged, ensure_ascii=False, separators=(",", ":"), default=str)


def _needs_care(column: pl.Series) -> bool:
    if column.dtype.is_float():
        return not column.is_finite().all()
    return column.dtype.is_nested() or column.dtype.is_decimal() or column.dtype in _WIDE


_WIDE = (pl.Int128, pl.UInt128)


def _plain_value(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain_value(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain_value(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
