"""One batch of files as rows of every table: parse, merge, validate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.derive.doubts import without_doubtful
from sweepscope.pipeline.estimate.rows.argument_facts import facts_of_arguments
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_runs
from sweepscope.pipeline.ingest.read_batch import read_batch
from sweepscope.pipeline.ingest.tracked_runs import under_their_files
from sweepscope.pipeline.ingest.validate import merge_rejects, validate
from sweepscope.pipeline.io.spill import release, stretches
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.assemble import assemble
from sweepscope.pipeline.logs.runs.listed_runs import settings_of
from sweepscope.pipeline.logs.runs.options import with_options
from sweepscope.pipeline.logs.runs.stated import of_table
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.pipeline.text.secret_columns import hidden_in, hide_frame
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES as SCHEMAS
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS

_PATHS = (
    *("path", "source_path", "linked_path", "former_path", "id_path", "part_of", "file", "unit", "run_dir", "sweep"),
    *("run_id", "duplicate_of", "sha256", "content_digest", "content_head"),
)
"""Columns by which files and runs are found again: paths, identifiers and digests."""

Tables = dict[str, pl.DataFrame]
"""Table name to its rows."""


def parse_batch(
    found: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
    records: Records | None = None,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Tables:
    """Rows of every table for the files of one batch, derived columns included, not yet validated.

    Args:
        found: discover.FOUND rows; whole units.
        now: UTC without a zone; decides which runs are still running.
        dialects: those to read with.
        records: where facts of growing logs are kept, so that only new lines are read; the rows are the same without.
        on_file: called with each path and its size.
    """
    batch = read_batch(found, dialects=dialects, records=records, on_file=on_file)
    tables = assemble(
        batch.sources,
        batch.facts,
        batch.spans,
        batch.sidecars,
        now=now,
        dialects=dialects,
        stated=batch.stated,
        arguments=(batch.arguments, batch.documents),
    )
    listed = [of_table(rows, batch.stated_of(rows)) for rows in batch.tables]
    rows = pl.concat([tables["runs"], *(one.rows for one in listed)], how="diagonal_relaxed")
    completed = complete_runs(without_doubtful(rows, batch.other[INFERRED_COLUMNS.name]))
    filled = completed.derived.join(completed.runs.select("run_id", "source_path"), on="run_id", maintain_order="left")
    all_tables = {
        **tables,
        **batch.other,
        "runs": completed.runs,
        "settings": pl.concat(
            [
                tables["settings"],
                *(one.settings for one in listed),
                *(settings_of(rows) for rows in batch.tables),
                SCHEMAS["settings"].conform(filled.with_columns(is_used=pl.lit(value=True))),
            ]
        ),
        "rejects": pl.concat([tables["rejects"], SCHEMAS["rejects"].conform(batch.rejects)]),
        "files": SCHEMAS["files"].conform(batch.files),
    }
    placed = under_their_files(all_tables, batch.tracked)
    of_tables = [SCHEMAS["arguments"].conform(rows) for rows in batch.table_arguments]
    runs, arguments = with_options(placed["runs"], pl.concat([placed["arguments"], *of_tables], how="diagonal_relaxed"))
    placed |= {"runs": SCHEMAS["runs"].conform(runs), "arguments": SCHEMAS["arguments"].conform(arguments)}
    return {name: _by_part(frame, batch.parts) for name, frame in placed.items()}


def _by_part(frame: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Rows of rotated logs with the path of their part and the number of their line in it.

    Args:
        frame: rows of any table.
        parts: read_batch.PARTS rows.
    """
    if parts.is_empty():
        return frame
    path = next((name for name in ("source_path", "file") if name in frame.columns), None)
    if path is None or "line_no" not in frame.columns:
        return frame
    begins = parts.select(pl.col("log").alias(path), pl.col("first_line").alias("line_no"), "first_line", "part")
    rows = frame.with_row_index("_row").sort("line_no", nulls_last=True)
    rows = rows.join_asof(begins.sort("line_no"), on="line_no", by=path, strategy="backward", check_sortedness=False)
    # What is not in a line belongs to the part that was written last.
    last = dict(parts.group_by("log", maintain_order=True).agg(pl.col("part").last()).iter_rows())
    return (
        rows.sort("_row")
        .with_columns(
            pl.coalesce("part", pl.col(path).replace(last)).alias(path),
            line_no=pl.col("line_no") - pl.coalesce("first_line", 1) + 1,
        )
        .select(frame.columns)
    )


def merge_tables(*parts: Tables) -> Tables:
    """Tables of several sources, concatenated by name."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: pl.concat([part[name] for part in parts if name in part], how="diagonal_relaxed") for name in names}


def validate_batch(tables: Tables) -> Tables:
    """Valid rows of every table; `rejects` has the others with their reasons, and `files` counts both."""
    tables = hide_tables(tables)
    good: Tables = {}
    rejects = [tables.get("rejects", SCHEMAS["rejects"].empty())]
    for name, frame in tables.items():
        if name not in ("files", "rejects"):
            result = validate(SCHEMAS[name], frame)
            good[name] = result.valid
            rejects.append(result.rejects)
    if "runs" in good:
        estimates = validate(SCHEMAS["estimates"], estimate_runs(_with_facts(good)))
        good["estimates"] = estimates.valid
        rejects.append(estimates.rejects)
    good["rejects"] = merge_rejects(pl.concat(rejects))
    files = _counted(tables["files"], good)
    good["files"] = validate(SCHEMAS["files"], SCHEMAS["files"].conform(files)).valid
    return good


def _with_facts(tables: Tables) -> pl.DataFrame:
    """Rows of `runs` with what their arguments state of kernels, overlap, precisions and buckets."""
    arguments = tables.get("arguments", SCHEMAS["arguments"].empty())
    return tables["runs"].join(facts_of_arguments(arguments), on="run_id", how="left", maintain_order="left")


def hide_tables(tables: Tables) -> Tables:
    """The rows of every table without credentials; paths, by which files are found again, stay as they are."""
    return {name: hide_frame(frame, besides=[*_PATHS, *_words(SCHEMAS[name])]) for name, frame in tables.items()}


def _words(table: Table) -> list[str]:
    return [column.name for column in table.columns if column.words]


def faulty_rows(table: Table, offered: pl.DataFrame, valid: pl.DataFrame) -> int:
    """Number of rows that only a fault in a parser explains: rows left out, or words that no vocabulary has.

    Figures out of bounds come from the files themselves; they become NULL and do not count.

    Args:
        table: the definition.
        offered: the rows before validation.
        valid: the rows after it.
    """
    words = [column.name for column in table.columns if column.words and column.name in offered.columns]
    lost = [offered[name].count() - valid[name].count() for name in words]
    return max(offered.height - valid.height, *lost, 0)


def _counted(files: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    # Neighbours are mostly of one file: of a million rows a few stretches remain.
    of_files = pl.concat(
        stretches(frame["source_path"])
        for name, frame in tables.items()
        if "source_path" in frame.columns and name not in ("files", "estimates")  # their rows are not read from lines
    )
    parsed = of_files.group_by(path="value").agg(rows_parsed=pl.col("len").cast(pl.Int64).sum())
    release()
    rejected = (
        tables["rejects"].group_by(pl.col("file").alias("path")).agg(pl.len().cast(pl.Int64).alias("lines_rejected"))
    )
    hidden = pl.concat(_hidden(name, frame) for name, frame in tables.items() if name not in ("files", "estimates"))
    hidden = hidden.group_by("path").agg(pl.col("secrets_hidden").sum())
    counts = ["rows_parsed", "lines_rejected", "secrets_hidden"]
    return (
        files.drop(counts, strict=False)
        .join(parsed, on="path", how="left", maintain_order="left")
        .join(rejected, on="path", how="left", maintain_order="left")
        .join(hidden, on="path", how="left", maintain_order="left")
        .with_columns(pl.col(counts).fill_null(0))
    )


def _hidden(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """`path` and `secrets_hidden`: texts of its rows in which a credential was hidden."""
    texts = [text for text, dtype in frame.schema.items() if dtype == pl.String and text not in _PATHS]
    counts = [hidden_in(frame[text]).cast(pl.Int64).rename("secrets_hidden") for text in texts]
    path = SCHEMAS[name].replaced_by
    if not counts or path not in frame.columns:
        return pl.DataFrame(schema={"path": pl.String, "secrets_hidden": pl.Int64})
    return pl.DataFrame([frame[path].alias("path"), sum(counts[1:], counts[0])]).filter(pl.col("secrets_hidden") > 0)
