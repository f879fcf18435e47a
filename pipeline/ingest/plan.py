"""Which files an ingest reads: list them, compare them with the ledger, cut them into batches."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.errors import NothingYetError, UsageError
from sweepscope.pipeline.ingest.archived_files import with_members
from sweepscope.pipeline.ingest.discover import changed, discover
from sweepscope.pipeline.ingest.linked_files import KNOWN, deduplicate_links
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.statements import of_home, with_stated
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.file_names import on_disk, printable
from sweepscope.pipeline.io.files import Entry, canonical, exists, list_files, marker_above
from sweepscope.pipeline.logs.declared.statements import Statement
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.simulate.marker import MARKER_NAME
from sweepscope.pipeline.store.checkpoints import REST_AFTER
from sweepscope.schemas.thresholds import STALE_AFTER

if TYPE_CHECKING:
    from sweepscope.pipeline.store.lake import (
        Lake,  # its libraries take 16 MB, which processes that only read logs save
    )

_LOG = logging.getLogger(__name__)

_OF_LEDGER = (
    "path",
    "unit",
    "bytes",
    "mtime",
    "sha256",
    "offset_bytes",
    "parser",
    "parser_version",
    "status",
    "stated",
)
"""Columns that `plan` compares; the others are most of the ledger's bytes."""

BATCH_UNITS = 1_000
BATCH_BYTES = 512 << 20


def find(
    paths: Sequence[str],
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    named: Collection[str] = (),
    left_out: Collection[Path] = (),
    known: pl.DataFrame | None = None,
    other_names: dict[str, str] | None = None,
    are_watched: bool = False,
    statements: Sequence[Statement] = (),
) -> pl.DataFrame:
    """Every file at the given paths as discover.FOUND rows, once each.

    Args:
        paths: files, directories and URLs; they may overlap.
        dialects: those whose file names are known.
        named: files that were given one by one before; they are logs whatever their name.
        left_out: folders whose files are not read.
        known: linked_files.KNOWN rows of the ledger; a file keeps the name that it has there.
        other_names: filled with one more name of each file that has several, by its path.
        are_watched: files may still have to appear at the paths.
        statements: what the home states of runs.

    Raises:
        UsageError: no path was given, or a `sweepscope.toml` is damaged and the paths are not watched.
        NothingYetError: one does not exist, or there is no file at any, and they are not watched.
        InputError: a path cannot be listed.
    """
    if not paths:
        raise UsageError("Nothing to ingest. Give a run directory, a sweep directory, a log file or a URL.")
    left_out_prefixes = tuple(f"{printable(canonical(str(folder)))}/" for folder in left_out)
    listed = (
        entry
        for path in paths
        for entry in with_members(_listed(path, is_watched=are_watched))
        if not entry.path.startswith(left_out_prefixes) and not entry.own_path.startswith(left_out_prefixes)
    )
    named_once = deduplicate_links(listed, pl.DataFrame(schema=KNOWN) if known is None else known)
    if other_names is not None:
        other_names.update(named_once.other_names)
    found = discover(
        named_once.entries,
        is_simulated=marker_above(MARKER_NAME),
        named={printable(canonical(path)) for path in paths} | set(named),
        dialects=dialects,
    )
    if found.is_empty() and not are_watched:
        raise NothingYetError(f"No files at {', '.join(paths)}. Give a directory that holds run directories or logs.")
    kinds = dict(found.group_by("kind").len().sort("kind").iter_rows())
    links = len(named_once.other_names)
    event(_LOG, logging.INFO, "discovered", files=found.height, units=found["unit"].n_unique(), links=links, **kinds)
    return with_stated(found, statements, are_watched=are_watched)


def _listed(path: str, *, is_watched: bool) -> Iterator[Entry]:
    try:
        yield from list_files(path)
    except NothingYetError:
        if not is_watched:
            raise


def awaited(paths: Sequence[str]) -> list[str]:
    """Those of the paths at which there is no file yet. Raises as `find` does for paths that cannot be read."""
    return [path for path in paths if next(_listed(path, is_watched=True), None) is None]


def plan(
    found: pl.DataFrame,
    ledger: pl.DataFrame,
    runs: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
) -> pl.DataFrame:
    """Rows of `found` that need reading.

    Those are files of units that are new or changed, of which something else is stated than when they were read, were
    read by another version of a parser, were running and have written nothing since, have become part of a sweep, or
    are at rest after one of their logs was read in parts.

    Args:
        found: discover.FOUND rows.
        ledger: _OF_LEDGER columns of `files`.
        runs: `source_path`, `status` and `sweep` of the runs in the lake.
        now: UTC without a zone.
        dialects: those to read with.
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
    ended, nested = (found.join(known.filter(changes), on="unit", how="semi") for changes in (has_ended, is_nested))
    whole = found.join(at_rest, on="unit", how="semi")
    planned = pl.concat([pending, ended, nested, whole]).unique("path").sort("path")
    event(
        _LOG,
        logging.INFO,
        "planned",
        files=planned.height,
        up_to_date=found.height - planned.height,
        new=pending.join(ledger, on="path", how="anti").height,
        changed_or_older_parser=pending.join(ledger, on="path", how="semi").height,
        silent_since_running=ended.height,
        now_in_a_sweep=nested.height,
        at_rest_after_parts=whole.height,
    )
    return planned


def batches(pending: pl.DataFrame, *, units: int = BATCH_UNITS, size: int = BATCH_BYTES) -> list[pl.DataFrame]:
    """FOUND rows, cut into batches of whole units: at most `units` units and about `size` bytes each."""
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


def find_for(
    lake: Lake,
    paths: Sequence[str],
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    other_names: dict[str, str] | None = None,
    are_watched: bool = False,
) -> pl.DataFrame:
    """`find` without files of the home; a file that was read as a log before is a log. Raises as `find` does.

    Folders below a run directory that the ledger knows are found with all of it: they are no runs of their own.
    """
    lake.refresh()
    known = lake.read("files", [*KNOWN, "kind", "unit"])
    read_as_log = known.filter(pl.col("kind").is_in(["log", "nccl", "scheduler"]))
    return find(
        [*paths, *_runs_around(paths, known)],
        dialects=dialects,
        named=read_as_log["path"],
        left_out=lake.home.own_folders,
        known=known.select(KNOWN.names()),
        other_names=other_names,
        are_watched=are_watched,
        statements=of_home(lake.home),
    )


def _runs_around(paths: Sequence[str], known: pl.DataFrame) -> list[str]:
    """Directories of known runs that one of the paths lies in, and logs of theirs elsewhere, as far as they are there.

    Args:
        paths: as the user gave them.
        known: `path`, `unit` and `kind` of the ledger.
    """
    given = [printable(canonical(path)) for path in paths if path]
    above = {folder for path in given for folder in _folders_above(path)}
    around = known.filter(pl.col("unit").is_in(above), pl.col("unit") != pl.col("path"))
    is_elsewhere = ~pl.col("path").str.starts_with(pl.col("unit") + "/")
    logs = around.filter(is_elsewhere, pl.col("kind") == "log")["path"]
    return [on_disk(path) for path in pl.concat([around["unit"], logs]).unique().sort() if exists(path)]


def _folders_above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def pending(
    lake: Lake, paths: Sequence[str], *, dialects: Sequence[Dialect] = DIALECTS, are_watched: bool = False
) -> pl.DataFrame:
    """FOUND rows under `paths` that need reading by the ledger of the latest release. Raises as `find` does."""
    return pending_of(lake, find_for(lake, paths, dialects=dialects, are_watched=are_watched), dialects=dialects)


def pending_of(lake: Lake, found: pl.DataFrame, *, dialects: Sequence[Dialect] = DIALECTS) -> pl.DataFrame:
    """Rows of `found` that need reading by the ledger of the latest release."""
    runs = lake.read("runs", columns=["source_path", "status", "sweep"])
    return plan(found, lake.read("files", _OF_LEDGER), runs, now=utc_now(), dialects=dialects)


def utc_now() -> datetime:
    """Now in UTC without a zone, as modification times are stored."""
    return datetime.now(UTC).replace(tzinfo=None)
