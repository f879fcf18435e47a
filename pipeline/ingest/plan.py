"""One ingest, step by step, as plain functions: list, plan, parse, validate. Dagster's assets call these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.data import PUBLISHED
from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_runs
from sweepscope.pipeline.ingest.discover import changed, discover
from sweepscope.pipeline.ingest.linked_files import KNOWN, one_name_each
from sweepscope.pipeline.ingest.published import load_published, published_ledger
from sweepscope.pipeline.ingest.read_batch import read_batch
from sweepscope.pipeline.ingest.validate import merge_rejects, validate
from sweepscope.pipeline.io.files import canonical, list_files, marker_above
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS, current_versions
from sweepscope.pipeline.logs.runs.assemble import assemble
from sweepscope.pipeline.logs.runs.outcome import STALE_AFTER
from sweepscope.pipeline.reference.accelerators import (
    load_accelerator_links,
    load_accelerators,
    load_published_bandwidths,
)
from sweepscope.pipeline.simulate.marker import MARKER_NAME
from sweepscope.pipeline.store.checkpoints import REST_AFTER, Records
from sweepscope.schemas.registry import TABLES as SCHEMAS

if TYPE_CHECKING:
    from sweepscope.pipeline.store.lake import Lake  # its libraries take 16 MB that a reading process has no use for

BATCH_UNITS = 1_000
BATCH_BYTES = 512 << 20

Tables = dict[str, pl.DataFrame]


def find(
    paths: Sequence[str],
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    named: Collection[str] = (),
    left_out: Collection[Path] = (),
    known: pl.DataFrame | None = None,
    other_names: dict[str, str] | None = None,
) -> pl.DataFrame:
    """Every file at the given paths as discover.FOUND rows, once each.

    Args:
        paths: files, directories and URLs; they may overlap.
        dialects: those whose file names are known.
        named: files that were given one by one before; they stay logs whatever their name.
        left_out: folders whose files are no input.
        known: one_name.KNOWN rows of the ledger: a file keeps the name by which the store knows it.
        other_names: is told one more name of each file that has several, by its path.

    Raises:
        UsageError: no path was given, one does not exist, or there is no file at any.
        InputError: a path cannot be listed.
    """
    if not paths:
        raise UsageError("Nothing to ingest. Give a run directory, a sweep directory, a log file or a URL.")
    barred = tuple(f"{canonical(str(folder))}/" for folder in left_out)
    listed = (
        entry
        for path in paths
        for entry in list_files(path)
        if not entry.path.startswith(barred) and not entry.own_path.startswith(barred)
    )
    named_once = one_name_each(listed, pl.DataFrame(schema=KNOWN) if known is None else known)
    if other_names is not None:
        other_names.update(named_once.other_names)
    found = discover(
        named_once.entries,
        is_simulated=marker_above(MARKER_NAME),
        named={canonical(path) for path in paths} | set(named),
        dialects=dialects,
    )
    if found.is_empty():
        raise UsageError(f"No files at {', '.join(paths)}. Give a directory that holds run directories or logs.")
    return found


def plan(
    found: pl.DataFrame,
    ledger: pl.DataFrame,
    runs: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
) -> pl.DataFrame:
    """Rows of `found` that need reading.

    Those are files of units that are new, changed, read by an older parser, were running and have gone stale since, now
    have siblings, which makes a sweep of the directory above, or are at rest after one of their logs was read in parts.

    Args:
        ledger: the `files` table. runs: `source_path`, `status` and `sweep` of the runs that are known.
    """
    pending = changed(found, ledger, versions=current_versions(dialects))
    silent_since, rest_since = ((now - pause).replace(tzinfo=UTC).timestamp() for pause in (STALE_AFTER, REST_AFTER))
    dated = found.with_columns(newest=pl.col("mtime").max().over("unit"))
    in_parts = ledger.filter(pl.col("sha256").is_null() & pl.col("offset_bytes").is_not_null(), status="parsed")
    at_rest = dated.filter(pl.col("newest") <= rest_since).join(in_parts, on="path", how="semi")
    known = dated.join(runs, left_on="path", right_on="source_path", suffix="_known")
    has_ended = (pl.col("status") == "running") & (pl.col("newest") < silent_since)
    own_name = pl.col("run_dir").str.extract(r"([^/]*)$")
    is_nested = (pl.col("sweep_known") == own_name) & (pl.col("sweep") != own_name)
    again = found.join(known.filter(has_ended | is_nested), on="unit", how="semi")
    whole = found.join(at_rest, on="unit", how="semi")
    return pl.concat([pending, again, whole]).unique("path").sort("path")


def batches(pending: pl.DataFrame, *, units: int = BATCH_UNITS, size: int = BATCH_BYTES) -> list[pl.DataFrame]:
    """Cut into batches of whole units: at most `units` of them and about `size` bytes each."""
    per_unit = pending.group_by("unit", maintain_order=True).agg(pl.col("bytes").sum())
    number, count, total, numbers = 0, 0, 0, []
    for amount in per_unit["bytes"].to_list():
        if count and (count >= units or total + amount > size):
            number, count, total = number + 1, 0, 0
        numbers.append(number)
        count, total = count + 1, total + amount
    keyed = pending.join(
        per_unit.select("unit", pl.Series("batch", numbers, dtype=pl.Int64)), on="unit", maintain_order="left"
    )
    return [part.drop("batch") for part in keyed.partition_by("batch", maintain_order=True)]


def parse(
    found: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
    records: Records | None = None,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Tables:
    """Read and parse one batch: rows of every table, derived columns included, not yet validated.

    `records` lets logs that have grown be read on from where they were left; the rows are the same without.
    """
    batch = read_batch(found, dialects=dialects, records=records, on_file=on_file)
    tables = assemble(batch.sources, batch.facts, batch.spans, batch.sidecars, now=now, dialects=dialects)
    rows = pl.concat([tables["runs"], *batch.tables], how="diagonal_relaxed")
    completed = complete_runs(rows)
    filled = completed.derived.join(completed.runs.select("run_id", "source_path"), on="run_id", maintain_order="left")
    return {
        **tables,
        **batch.other,
        "runs": completed.runs,
        "settings": pl.concat(
            [tables["settings"], SCHEMAS["settings"].conform(filled.with_columns(is_used=pl.lit(value=True)))]
        ),
        "rejects": pl.concat([tables["rejects"], SCHEMAS["rejects"].conform(batch.rejects)]),
        "files": SCHEMAS["files"].conform(batch.files),
    }


def find_for(
    lake: Lake,
    paths: Sequence[str],
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    other_names: dict[str, str] | None = None,
) -> pl.DataFrame:
    """What `find` finds, without the home's own files; what was read as a log before is one still. Raises as `find`."""
    known = lake.read("files", [*KNOWN, "kind"])
    read_as_log = known.filter(pl.col("kind").is_in(["log", "nccl", "scheduler"]))
    return find(
        paths,
        dialects=dialects,
        named=read_as_log["path"],
        left_out=lake.home.own_folders,
        known=known.select(KNOWN.names()),
        other_names=other_names,
    )


def pending(lake: Lake, paths: Sequence[str], *, dialects: Sequence[Dialect] = DIALECTS) -> pl.DataFrame:
    """Files under `paths` that need reading, judged by the ledger of the latest release. Raises as `find` does."""
    return pending_of(lake, find_for(lake, paths, dialects=dialects), dialects=dialects)


def pending_of(lake: Lake, found: pl.DataFrame, *, dialects: Sequence[Dialect] = DIALECTS) -> pl.DataFrame:
    """Rows of `found` that need reading, judged by the ledger of the latest release."""
    runs = lake.read("runs", columns=["source_path", "status", "sweep"])
    return plan(found, lake.read("files"), runs, now=utc_now(), dialects=dialects)


def merge(*parts: Tables) -> Tables:
    """Tables of several sources one below the other."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: pl.concat([part[name] for part in parts if name in part], how="diagonal_relaxed") for name in names}


def bundled_is_pending(ledger: pl.DataFrame) -> bool:
    """Whether a bundled table is new, or has changed since the ledger saw it."""
    known = ledger.filter(pl.col("kind") == "published").select("path", "sha256", "parser_version")
    return not published_ledger(PUBLISHED).select(known.columns).join(known, on=known.columns, how="anti").is_empty()


def bundled() -> Tables:
    """The bundled tables: published results, and what they are judged by."""
    return {**load_published(PUBLISHED), "published_bandwidths": load_published_bandwidths(), **hardware()}


def hardware() -> Tables:
    """What every run is judged by, one's own as well: accelerators and their links."""
    return {"accelerators": load_accelerators(), "accelerator_links": load_accelerator_links()}


def hardware_is_pending(lake: Lake) -> bool:
    """Whether the lake knows other accelerators or links than these."""
    return any(not lake.read(name).sort(pl.all()).equals(rows.sort(pl.all())) for name, rows in hardware().items())


def check(tables: Tables) -> Tables:
    """Valid rows of every table; what broke a schema stands in `rejects`, and `files` counts both."""
    good: Tables = {}
    rejects = [tables.get("rejects", SCHEMAS["rejects"].empty())]
    for name, frame in tables.items():
        if name not in ("files", "rejects"):
            result = validate(SCHEMAS[name], frame)
            good[name] = result.valid
            rejects.append(result.rejects)
    if "runs" in good:
        estimates = validate(SCHEMAS["estimates"], estimate_runs(good["runs"]))
        good["estimates"] = estimates.valid
        rejects.append(estimates.rejects)
    good["rejects"] = merge_rejects(pl.concat(rejects))
    files = _counted(tables["files"], good)
    good["files"] = validate(SCHEMAS["files"], SCHEMAS["files"].conform(files)).valid
    return good


def _counted(files: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    rows = pl.concat(
        frame.select(pl.col("source_path").alias("path"))
        for name, frame in tables.items()
        if "source_path" in frame.columns and name not in ("files", "estimates")  # no lines of their own
    )
    parsed = rows.group_by("path").agg(pl.len().cast(pl.Int64).alias("rows_parsed"))
    rejected = (
        tables["rejects"].group_by(pl.col("file").alias("path")).agg(pl.len().cast(pl.Int64).alias("lines_rejected"))
    )
    counts = ["rows_parsed", "lines_rejected"]
    return (
        files.drop(counts, strict=False)
        .join(parsed, on="path", how="left", maintain_order="left")
        .join(rejected, on="path", how="left", maintain_order="left")
        .with_columns(pl.col(counts).fill_null(0))
    )


def utc_now() -> datetime:
    """Now, in UTC, without a zone: as modification times are kept."""
    return datetime.now(UTC).replace(tzinfo=None)
