"""Lines by which a trainer says that a run begins, or that it has ended well."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import EVENT_FACTS, conform
from sweepscope.pipeline.text.timestamps import timestamp


def milestones(lines: pl.DataFrame, *, launch: str | None = None, training_end: str | None = None) -> pl.DataFrame:
    """EVENT_FACTS for the lines that match either expression, with their time from text or prefix."""
    text = pl.col("text")
    found = pl.concat(
        lines.filter(text.str.contains(pattern)).with_columns(kind=pl.lit(kind))
        for kind, pattern in (("launch", launch), ("training_end", training_end))
        if pattern is not None
    )
    ts = pl.coalesce(timestamp(text), timestamp(pl.col("prefix")))
    return conform(found.with_columns(ts=ts, text=text.str.strip_chars()), EVENT_FACTS)
