"""Printed quantities in base units, as polars expressions over text columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

# nanotron prints 1e9 as G in old versions and B in new ones; picotron uses K/M/B/T; scripts of one's own a small k.
_HUMAN = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15, "Q": 1e15}
_BYTES = (
    {"B": 1.0}
    | {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    | {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
)

_SUFFIXED = r"[KMBGTPQ]\s*$"

NUMBER = r"[-+]?(?:[0-9][0-9,]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+|nan|NaN|inf|Infinity)"
"""A printed number, thousands separators and NaN included. Use inside a pattern's group."""

HUMAN = NUMBER + " ?[KMBGTPQ]?"
"""A number with a metric suffix glued on or after one blank."""


def number(text: pl.Expr) -> pl.Expr:
    """Plain number, thousands separators allowed; NaN and inf are values, unreadable text is NULL.

    >>> pl.select(number(pl.lit("9,646.5"))).item()
    9646.5
    """
    return text.map_batches(_number, return_dtype=pl.Float64, is_elementwise=True)


def _number(text: pl.Series) -> pl.Series:
    """Numbers; separators are removed only where one text has any."""
    found = text.cast(pl.Float64, strict=False)
    if found.null_count() == text.null_count():
        return found
    return text.str.replace_all(",", "", literal=True).cast(pl.Float64, strict=False)


def human(text: pl.Expr) -> pl.Expr:
    """Number with a metric suffix.

    >>> pl.select(human(pl.lit("13.8K"))).item()
    13800.0
    >>> pl.select(human(pl.lit("1.87e-05"))).item()
    1.87e-05
    """
    return text.map_batches(_human, return_dtype=pl.Float64, is_elementwise=True)  # so that a literal is broadcast


def divided(value: pl.Expr, by: float) -> pl.Expr:
    """`value / by`, rounded to nine decimals: 0.94 % is 0.0094, 8791.5 ms are 8.7915 s.

    polars divides a single row and many rows by different kernels, which differ in the last bit; the same file must
    give the same value whatever it is read together with.

    >>> pl.select(divided(pl.lit(0.94), 100)).item()
    0.0094
    """
    return (value / by).round(9)


def size(text: pl.Expr) -> pl.Expr:
    """Size with a unit to bytes: MiB is 2**20, MB is 10**6, as written. Returns Int64.

    >>> pl.select(size(pl.lit("496.00MiB"))).item()
    520093696
    """
    return text.map_batches(_size, return_dtype=pl.Int64, is_elementwise=True)


def _human(text: pl.Series) -> pl.Series:
    """Scaled numbers without binary noise: 1.02 * 1e3 is 1020, not 1020.0000000000001."""
    first = text.drop_nulls().head(1)
    if first.str.contains(_SUFFIXED).any():  # then most are, and reading them as plain numbers is in vain
        value = each_once(text, _scaled_human)
    else:
        plain = text.cast(pl.Float64, strict=False)
        others = (plain.is_null() & text.is_not_null()).arg_true()
        value = plain.scatter(others, each_once(text.gather(others), _scaled_human)) if others.len() else plain
    return pl.select(pl.when(value.abs() >= 1).then(value.round(6)).otherwise(value)).to_series()


def _scaled_human(text: pl.Series) -> pl.Series:
    return _scaled(text, _HUMAN).to_series()


def _size(text: pl.Series) -> pl.Series:
    return each_once(text, _whole_bytes)


def _whole_bytes(text: pl.Series) -> pl.Series:
    return _scaled(text, _BYTES).select(pl.col("value").round(0).cast(pl.Int64, strict=False)).to_series()


def each_once(text: pl.Series, read: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """`read(text)`, with each distinct text read once where texts repeat, as numbers of few digits do."""
    distinct = text.unique()
    if distinct.len() * 4 >= text.len():
        return read(text)
    return text.replace_strict(distinct, read(distinct))


def _scaled(text: pl.Series, units: Mapping[str, float]) -> pl.DataFrame:
    """`value`: numbers times the factor of the unit at their end; "" is the unit of bare numbers, if there is one."""
    # One frame after the other, because an expression that is used twice is computed twice.
    printed = pl.select(text=text.str.strip_chars())
    letters = "".join(sorted(set("".join(units))))
    parts = printed.with_columns(bare=pl.col("text").str.strip_chars_end(letters))
    unit = pl.col("text").str.strip_prefix(pl.col("bare"))
    factor = unit.replace_strict(units, default=None, return_dtype=pl.Float64)
    return parts.select(value=number(pl.col("bare").str.strip_chars_end()) * factor)
