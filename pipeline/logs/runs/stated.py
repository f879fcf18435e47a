"""Settings that somebody states of files whose logs do not say them, as settings of runs."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.logs.runs.setting_precedence import as_column
from sweepscope.schemas.tables.runs import RUNS, SETTINGS

STATED = pl.Schema(
    {
        "source": pl.Int64,
        "name": pl.String,
        "value": pl.String,
        "setting_source": pl.String,
        "stated_in": pl.String,
    }
)
"""What is stated of a source: a column of `runs`, its value, and the file that states it (NULL: a dialect file)."""

SOURCES_STATED = ("stated", "stated_override")
"""Setting sources that are no fact of a file: they tell nothing of how far a run came."""


def of_runs(stated: pl.DataFrame, runs: pl.DataFrame, joined: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Rows like those of `settings.settings_of_runs`, with `stated_in`: what is stated of the sources of each run.

    A run's own log counts before other readings of the run.

    Args:
        stated: STATED rows.
        runs: `source`, `run_id`.
        joined: `source`, `run_id` of further sources that tell of runs.
        sources: `source`, `path`.
    """
    read = pl.concat([runs.select("source", "run_id"), joined.select("source", "run_id")])
    rows = read.join(stated, on="source", maintain_order="left").unique(
        ["run_id", "name", "setting_source"], keep="first", maintain_order=True
    )
    named = rows.join(sources.select("source", source_path="path"), on="source", maintain_order="left")
    columns = ("run_id", "name", "value", "setting_source", "line_no", "source_path", "stated_in")
    return named.with_columns(line_no=pl.lit(None, pl.Int64)).select(columns)


@dataclass(frozen=True)
class StatedTable:
    """Rows of a table with one run each, completed by what is stated of its file, and SETTINGS rows on that."""

    rows: pl.DataFrame
    settings: pl.DataFrame


def of_table(rows: pl.DataFrame, stated: pl.DataFrame) -> StatedTable:
    """`rows` of `runs` with what is stated of their file where they have no value, or where it overrides.

    Args:
        rows: of one file, read as a table.
        stated: STATED rows of that file.
    """
    settings = [SETTINGS.empty()]
    known = {column.name: column for column in RUNS.columns}
    for source in ("stated_override", "stated"):
        for name, value, file in stated.filter(setting_source=source).select("name", "value", "stated_in").iter_rows():
            column = known[name]
            before = (
                rows[name] if name in rows.columns else pl.repeat(None, rows.height, dtype=column.dtype, eager=True)
            )
            is_used = before.is_null() if source == "stated" else pl.repeat(value=True, n=rows.height, eager=True)
            typed = pl.DataFrame({name: [value]}).select(as_column(name, column)).item()
            after = pl.when(is_used).then(pl.lit(typed, column.dtype)).otherwise(before)
            rows = rows.with_columns(after.alias(name))
            facts = {"name": name, "value": value, "setting_source": source, "stated_in": file}
            named = rows.select("run_id", "source_path", is_used.alias("is_used"))
            settings.append(
                SETTINGS.conform(named.with_columns(pl.lit(text).alias(key) for key, text in facts.items()))
            )
    return StatedTable(rows, pl.concat(settings))
