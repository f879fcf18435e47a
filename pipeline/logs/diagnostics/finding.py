"""A finding: a line of the log, and a sentence on what it shows."""

from __future__ import annotations

import polars as pl

FINDING = pl.Schema(
    {
        "run_id": pl.String(),
        "source_path": pl.String(),
        "line_no": pl.Int64(),
        "ts": pl.Datetime("us"),
        "kind": pl.String(),
        "rank": pl.Int64(),
        "host": pl.String(),
        "text": pl.String(),
    }
)
"""One row per finding, as in the table `events`."""


def finding(rows: pl.DataFrame, kind: str | None = None) -> pl.DataFrame:
    """`rows` as FINDING rows (of that kind); columns that they lack are NULL."""
    have = rows.columns
    frame = rows.select(
        (pl.col(name) if name in have else pl.lit(None)).cast(dtype).alias(name) for name, dtype in FINDING.items()
    )
    return frame if kind is None else frame.with_columns(kind=pl.lit(kind))


def at_line(rows: pl.DataFrame, steps: pl.DataFrame, step: str) -> pl.DataFrame:
    """`rows` (one per run) with `source_path`, `line_no` and `ts` of the step that their column named `step` holds."""
    if rows.is_empty():
        steps = steps.clear()
    few = steps.filter(pl.col("run_id").is_in(rows["run_id"].unique().implode()))
    lines = few.select("run_id", pl.col("step").alias(step), "source_path", "line_no", "ts")
    return rows.join(lines, on=["run_id", step], how="left", maintain_order="left")
