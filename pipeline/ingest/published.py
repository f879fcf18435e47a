"""The bundled tables of published results as frames of `published_runs`, `runs`, `settings` and `files`.

A CSV has its source's words and units; `published_rows` converts them. A new table is a file
in `data/published` plus a line in `data/manifest.csv`.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest.published_rows import PARSER, PARSER_VERSION, as_published, as_runs
from sweepscope.schemas.tables.ledger import FILES
from sweepscope.schemas.tables.runs import RUNS, SETTINGS


def _read_csv(path: Path, raw: bytes) -> pl.DataFrame:
    """All columns as text, with `dataset`, `line_no`, `source_path`, `run_id`; empty cells are NULL."""
    source_path = f"data/published/{path.name}"
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    try:
        rows = pl.read_csv(text, infer_schema=False)
    except (pl.exceptions.ComputeError, pl.exceptions.NoDataError) as error:
        raise InputError(f"{path}: not a table of published results ({error}). Restore it from the package.") from error
    rows = rows.with_row_index("line_no", offset=2).with_columns(
        line_no=pl.col("line_no").cast(pl.Int64),
        dataset=pl.lit(path.name.removesuffix(".gz").removesuffix(".csv")),
        source_path=pl.lit(source_path),
    )
    return rows.with_columns(
        run_id=pl.Series([run_id(source_path, f"L{line}") for line in rows["line_no"]], dtype=pl.String)
    )


def _read_table(path: Path, raw: bytes) -> pl.DataFrame:
    """A bundled CSV as rows of `published_runs`. Raises InputError naming the file and the cell's trouble."""
    try:
        return as_published(_read_csv(path, raw))
    except pl.exceptions.InvalidOperationError as error:
        raise InputError(f"{path}: {error}. Mend the cell, or restore the file from the package.") from error


def _file(path: Path, raw: bytes, rows: int) -> dict[str, object]:
    name = f"data/published/{path.name}"
    return {
        "path": name,
        "unit": name,
        "kind": "published",
        "bytes": len(raw),
        "mtime": 0.0,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "parser": PARSER,
        "parser_version": PARSER_VERSION,
        "status": "parsed",
        "rows_parsed": rows,
        "lines_rejected": 0,
    }


def published_files(directory: Path) -> list[Path]:
    """The tables in `directory`, by name."""
    return sorted([*directory.glob("*.csv"), *directory.glob("*.csv.gz")])


def load_published(directory: Path) -> dict[str, pl.DataFrame]:
    """Frames of `published_runs`, `runs`, `settings` and `files` for every table in `directory`.

    Paths in the rows are those inside the package (`data/published/<file>`), so that ids do not depend on where it is
    installed. `published_runs` keeps the source's words and units; `runs` goes through the same completion as measured
    runs, and `settings` holds what that filled. Raises InputError for a file that is not such a table.
    """
    tables: list[pl.DataFrame] = []
    files: list[dict[str, object]] = []
    for path in published_files(directory):
        raw = path.read_bytes()
        table = _read_table(path, raw)
        tables.append(table)
        files.append(_file(path, raw, table.height))
    if not tables:
        raise InputError(f"{directory}: no published tables. Restore them from the package.")
    published = pl.concat(tables)
    completed = complete_runs(as_runs(published), are_whole=False)
    return {
        "published_runs": published,
        "runs": RUNS.conform(completed.runs),
        "files": FILES.conform(pl.DataFrame(files)),
        "settings": _settings(completed.derived, published),
    }


def _settings(derived: pl.DataFrame, published: pl.DataFrame) -> pl.DataFrame:
    """Rows of `settings` with the values that completion filled."""
    positions = published.select("run_id", "source_path", "line_no")
    return SETTINGS.conform(derived.join(positions, on="run_id", maintain_order="left").with_columns(is_used=True))


def published_ledger(directory: Path) -> pl.DataFrame:
    """`path`, `sha256` and `parser_version` of every table in `directory`, without parsing it."""
    rows = [_file(path, path.read_bytes(), 0) for path in published_files(directory)]
    return FILES.conform(pl.DataFrame(rows)).select("path", "sha256", "parser_version")
