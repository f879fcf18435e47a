"""Timestamps as training logs print them. Times stay as logged: logs rarely say their time zone."""

from __future__ import annotations

import polars as pl

_ISO = r"(\d{4}-\d{2}-\d{2})[ T_](\d{2}:\d{2}:\d{2})"  # Megatron, torchtitan, slurmstepd, torchrun
_US = r"\b(\d{2}/\d{2}/\d{4}) (\d{2}:\d{2}:\d{2})"  # nanotron
_EPOCH_MS = r':::MLLOG .*"time_ms": ?(\d{13})\b'  # MLPerf; read as UTC
_COMPACT = r"\[(\d{8}) (\d{2}:\d{2}:\d{2})\]"  # Primus


def timestamp(text: pl.Expr) -> pl.Expr:
    """First timestamp of a line as Datetime, NULL when it has none.

    >>> str(pl.select(timestamp(pl.lit("10/17/2025 16:31:56 [INFO]: x"))).item())
    '2025-10-17 16:31:56'
    """

    def read(pattern: str, day: str) -> pl.Expr:
        joined = pl.concat_str(text.str.extract(pattern, 1), text.str.extract(pattern, 2), separator=" ")
        return joined.str.to_datetime(f"{day} %H:%M:%S", strict=False, time_unit="us")

    since_epoch = pl.from_epoch(text.str.extract(_EPOCH_MS).cast(pl.Int64), time_unit="ms").cast(pl.Datetime("us"))
    return pl.coalesce(read(_ISO, "%Y-%m-%d"), read(_US, "%m/%d/%Y"), read(_COMPACT, "%Y%m%d"), since_epoch)
