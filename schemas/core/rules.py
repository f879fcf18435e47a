"""Rules that several tables share. Nothing here knows a concrete column."""

from __future__ import annotations

import polars as pl

from sweepscope.schemas.core.table import Rule


def in_order(first: str, last: str) -> Rule:
    """`first` is not after `last`."""
    return Rule(f"{first}_to_{last}", (first, last), pl.col(first) <= pl.col(last), f"{first} comes after {last}")


def within(part: str, whole: str, *, relative: float = 0.0, absolute: float = 0.0) -> Rule:
    """`part` is not larger than `whole`, of which it is a share; the tolerances cover rounding by printers."""
    limit = pl.col(whole) * (1 + relative) + absolute
    return Rule(f"{part}_within_{whole}", (part, whole), pl.col(part) <= limit, f"{part} exceeds {whole}")


def at_most(name: str, limit: float) -> Rule:
    """`name` does not exceed `limit`."""
    return Rule(f"{name}_at_most", (name,), pl.col(name) <= limit, f"{name} exceeds {limit:g}")
