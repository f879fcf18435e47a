"""Step lines and values of steps that cannot be used: unknown ones become NULL, impossible ones rows of `rejects`.

`ingest.validate` judges by the same bounds, but only after medians and peaks have been computed from the values.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, few_of, in_slices, release
from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS
from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.schemas.core.column import Column
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.vocab import REJECT_REASON_LEFT_OUT as LEFT_OUT
from sweepscope.schemas.vocab import REJECT_REASON_UNPARSED

_RATES = ("tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu_logged", "mfu_logged")
_MEMORY = ("mem_allocated_bytes", "mem_reserved_bytes")
_BOUNDED = tuple(
    column
    for column in TABLES["steps"].columns
    if column.name in STEP_FACTS and column.name != "line_no" and (column.positive or column.minimum is not None)
)
_PEAKS = tuple(column for column in TABLES["runs"].columns if column.name.startswith("mem_peak_"))


def checked_steps(steps: pl.DataFrame, sources: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """STEP_FACTS rows with a step and possible values only, and rows of `rejects` for all else.

    A line whose step is missing or impossible is left out; another impossible value becomes NULL.

    Args:
        steps: STEP_FACTS rows.
        sources: `source`, `path`.
    """
    rejects = [_unparsed(steps, sources)]
    steps = in_slices(steps, lambda rows: _without_unknown(rows.drop_nulls("step")))
    bad = {column: _is_impossible(column) for column in _BOUNDED}
    found: set[str] = set()
    for rows in steps.iter_slices(SLICE_ROWS):
        is_any = rows.select(is_bad.any().alias(column.name) for column, is_bad in bad.items()).row(0, named=True)
        found.update(name for name, is_found in is_any.items() if is_found)
        release()
    bad = {column: is_bad for column, is_bad in bad.items() if column.name in found}
    if not bad:
        return steps, rejects[0]
    for column, is_bad in bad.items():
        rows = steps.filter(is_bad)
        rejects.append(_impossible(rows, sources, column, table="steps", value=pl.col(column.name)))
    steps = steps.with_columns(pl.when(~is_bad).then(column.name).alias(column.name) for column, is_bad in bad.items())
    return steps.drop_nulls("step"), pl.concat(rejects)


def repeated_steps(repeats: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Rows of `rejects`, one for each of attempts.REPEATS."""
    located = repeats.join(sources.select("source", "path"), on="source", maintain_order="left")
    return TABLES["rejects"].conform(
        located.select(
            pl.col("path").alias("file"),
            "line_no",
            table=pl.lit("steps"),
            column=pl.lit("step"),
            reason="reason",
            raw=pl.format("step {}; {} such lines in the file", "step", "count"),
        )
    )


def checked_peaks(peaks: pl.DataFrame, sources: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Observations of peak memory (`source`, `line_no`, `name`, `value`) that are possible, and rows of `rejects`.

    A peak of 0 is what trainers print where they measure none, and is left out.
    """
    is_unknown = pl.col("value") == 0
    if few_of(peaks, is_unknown).height:
        peaks = in_slices(peaks, lambda rows: rows.filter(~is_unknown))
    is_bad = pl.any_horizontal((pl.col("name") == c.name) & _is_impossible(c, "value") for c in _PEAKS)
    is_bad = is_bad.fill_null(value=False)
    bad = few_of(peaks, is_bad)
    rejects = [
        _impossible(bad.filter(name=column.name), sources, column, table="runs", value=pl.col("value"))
        for column in _PEAKS
    ]
    good = in_slices(peaks, lambda rows: rows.filter(~is_bad)) if bad.height else peaks
    return good, pl.concat(rejects)


def _without_unknown(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` with NULL for a time rounded to 0, for the rates (`inf`, `nan`) that trainers derive from it, and for no
    memory at all, as mmengine prints it on a CPU."""
    time = pl.col("step_time_s")
    return steps.with_columns(
        *(pl.when(pl.col(name) != 0).then(name).alias(name) for name in _MEMORY),
        pl.when(time.is_finite() & (time != 0)).then(time).alias("step_time_s"),
        *(pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in _RATES),
    )


def _is_impossible(column: Column, name: str | None = None) -> pl.Expr:
    """Whether a value lies outside the bounds of `column`; false for NULL, and for NaN, which polars orders last."""
    value = pl.col(name or column.name)
    is_bad = value <= 0 if column.positive else value < (column.minimum or 0)
    return is_bad.fill_null(value=False)


def _impossible(
    rows: pl.DataFrame, sources: pl.DataFrame, column: Column, *, table: str, value: pl.Expr
) -> pl.DataFrame:
    bound = "must be above 0" if column.positive else f"must be at least {column.minimum:g}"
    prefix = "" if column.name == "step" else f"{LEFT_OUT}: "  # a row of `steps` needs its step
    shown = [name for name in ("step", "name", value.meta.output_name()) if name in rows.columns]
    located = rows.with_columns(raw=pl.struct(list(dict.fromkeys(shown))).struct.json_encode()).join(
        sources.select("source", "path"), on="source", maintain_order="left"
    )
    return TABLES["rejects"].conform(
        located.select(
            pl.col("path").alias("file"),
            "line_no",
            "raw",
            table=pl.lit(table),
            column=pl.lit(column.name),
            reason=pl.format(f"{prefix}{bound}, got {{}}", value),
        )
    )


def _unparsed(steps: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
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
