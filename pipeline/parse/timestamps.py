"""Timestamps as training logs print them. Times stay as logged: logs rarely say their time zone."""

from __future__ import annotations

import polars as pl

_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
# Group to be read, and the ways in which it may be written. Each line is read by the first that it matches.
_WRITTEN: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Megatron, torchtitan, slurmstepd, torchrun
    (rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T_]{_CLOCK})", tuple(f"%Y-%m-%d{mark}%H:%M:%S" for mark in " T_")),
    (rf"\b([0-9]{{2}}/[0-9]{{2}}/[0-9]{{4}} {_CLOCK})", ("%m/%d/%Y %H:%M:%S",)),  # nanotron
    (rf"\[([0-9]{{8}} {_CLOCK})\]", ("%Y%m%d %H:%M:%S",)),  # Primus
)  # fmt: skip
_EPOCH_MS = r':::MLLOG .*"time_ms": ?([0-9]{13})\b'  # MLPerf; read as UTC


def timestamp(text: pl.Expr) -> pl.Expr:
    """First timestamp of a line as Datetime, NULL when it has none.

    >>> str(pl.select(timestamp(pl.lit("10/17/2025 16:31:56 [INFO]: x"))).item())
    '2025-10-17 16:31:56'
    """
    return text.map_batches(_read, return_dtype=pl.Datetime("us"), is_elementwise=True)


def _read(text: pl.Series) -> pl.Series:
    """Way by way, as long as there are lines without a time: most logs know a single one."""
    found = pl.Series("ts", [None] * len(text), dtype=pl.Datetime("us"))
    for pattern, formats in _WRITTEN:
        printed = text.str.extract(pattern)
        if printed.null_count() == len(text):
            continue
        for layout in formats:
            read = printed.str.to_datetime(layout, strict=False, time_unit="us")
            found = read if found.null_count() == len(text) else pl.select(pl.coalesce(found, read)).to_series()
        if not found.null_count():
            return found
    epoch_ms = text.str.extract(_EPOCH_MS)
    if epoch_ms.null_count() < len(text):
        read = epoch_ms.cast(pl.Int64).cast(pl.Datetime("ms")).cast(pl.Datetime("us"))
        found = pl.select(pl.coalesce(found, read)).to_series()
    return found
