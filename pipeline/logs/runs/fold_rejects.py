"""Rows of `rejects` that the fold finds: step lines and values that could not be read."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS
from sweepscope.pipeline.logs.runs import setting_precedence
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.vocab import REJECT_REASON_UNPARSED


def unparsed(steps: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    if not steps["step"].null_count():
        return TABLES["rejects"].empty()
    bad = steps.filter(pl.col("step").is_null()).join(sources.select("source", "path"), on="source")
    return TABLES["rejects"].conform(
        bad.select(
            pl.col("path").alias("file"),
            "line_no",
            table=pl.lit("steps"),
            column=pl.lit("step"),
            reason=pl.lit(REJECT_REASON_UNPARSED),
            raw=pl.col("text").str.slice(0, MAX_TEXT_CHARS),
        )
    )


def unreadable(chosen: pl.DataFrame) -> pl.DataFrame:
    bad = setting_precedence.unreadable(chosen, TABLES["runs"].columns)
    return TABLES["rejects"].conform(
        bad.select(
            pl.col("source_path").alias("file"),
            "line_no",
            table=pl.lit("runs"),
            column=pl.col("name"),
            reason=pl.lit("the value cannot be read as what its column holds"),
            raw=pl.col("value").str.slice(0, MAX_TEXT_CHARS),
        )
    )
