"""Read the files that accompany logs: histories, tables of runs and jobs, memory recordings, dumps."""

from __future__ import annotations

import csv
import fnmatch
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import polars as pl

from sweepscope.pipeline.errors import InputError, SweepscopeError
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.file_kinds import is_report
from sweepscope.pipeline.ingest.read_configuration import settings_beside
from sweepscope.pipeline.ingest.read_results import add_runs, read_own_table, read_report
from sweepscope.pipeline.ingest.read_tracker import read_export, stem
from sweepscope.pipeline.ingest.statements import check_statements
from sweepscope.pipeline.io.bounded import bounded, text_of
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.meter import metered
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES, without_utf16
from sweepscope.pipeline.logs.dialect import BinaryHistory, History
from sweepscope.pipeline.logs.registry import TABLES
from sweepscope.pipeline.logs.result_tables.read import may_be_runs
from sweepscope.pipeline.logs.sidecars.folder_name import read_folder_name
from sweepscope.pipeline.logs.trackers.exports import is_export, is_table_of_runs
from sweepscope.pipeline.memory.gpu_samples.samples import is_samples
from sweepscope.pipeline.memory.sources import read_memory_file
from sweepscope.pipeline.nccl.bench import formats
from sweepscope.pipeline.nccl.facts import Facts as NcclFacts
from sweepscope.pipeline.nccl.inspector import read_inspector
from sweepscope.pipeline.scheduler import registry as schedulers
from sweepscope.schemas import limits
from sweepscope.schemas.tables.ledger import REJECTS
from sweepscope.schemas.tables.nccl import NCCL_INSPECTOR
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS

_LOG = logging.getLogger(__name__)

_EXPECTED = (SweepscopeError, ValueError, RecursionError, csv.Error, pl.exceptions.PolarsError)
"""What says that a file is not what its name promises."""


@contextmanager
def reading_whole(reader: Reader) -> Iterator[None]:
    """Have the block, which reads a file as a whole, cost no more than the file may, and the other files nothing.

    Raises:
        LimitError: it took too much time or memory.
        InputError: the reader failed in a way that it does not foresee, which is logged.
    """
    try:
        with metered(reader.path, lambda: reader.unpacked_bytes):
            yield
    except _EXPECTED:
        raise
    except Exception as error:
        event(_LOG, logging.ERROR, "reader_failed", path=reader.path, error=repr(error)[:200])
        _LOG.debug("event=reader_failed path=%s", reader.path, exc_info=True)
        reason = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
        raise InputError(f"Cannot read {reader.path}: its reader failed ({reason}). Please report it.") from error


def read_dump(source: int, reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a flight recorder's dump. Raises ValueError for another file."""
    path = reader.path
    if broken := batch.nccl.add_dump(source, path, b"".join(bounded(reader.chunks()))):
        batch.reject(path, None, "not a record", f"{broken:,} entries", table="flight_records")
    return {"parser": "nccl"}


def read_bench(
    source: int, chunks: Iterable[bytes], batch: BatchAccumulator, read: Callable[[str, int], NcclFacts]
) -> dict[str, object]:
    """Ledger columns of results of nccl-tests or rccl-tests. Raises ValueError for damaged ones."""
    text = text_of(chunks)
    batch.nccl.add_facts(read(text, source))
    return {"kind": "nccl", "parser": "nccl"}


def read_calls(
    row: dict[str, object], reader: Reader, chunks: Iterable[bytes], batch: BatchAccumulator
) -> dict[str, object]:
    """Ledger columns of a file of NCCL's Inspector. Raises LimitError for one that is too large."""
    found, rejects = read_inspector(text_of(chunks, limits.STREAMED_BYTES))
    location = {name: pl.lit(row[name], pl.String) for name in ("run_dir", "sweep")}
    rows = NCCL_INSPECTOR.conform(found.with_columns(source_path=pl.lit(reader.path), **location))
    batch.other.setdefault(NCCL_INSPECTOR.name, []).append(rows)
    for line, reason, raw in rejects:
        batch.reject(reader.path, line, reason, raw, table=NCCL_INSPECTOR.name)
    return {"kind": "nccl", "parser": "nccl"}


def read_jobs(
    jobs: schedulers.SchedulerTable, row: dict[str, object], chunks: Iterable[bytes], batch: BatchAccumulator
) -> dict[str, object]:
    """Ledger columns of a scheduler's table of jobs."""
    path = str(row["path"])
    found, rejects = read_scheduler_table(
        jobs, bounded(chunks, limits.STREAMED_BYTES), path=path, run_dir=str(row["run_dir"])
    )
    batch.other.setdefault(SCHEDULER_JOBS.name, []).append(found)
    batch.rejects += rejects.to_dicts()
    return {"kind": "scheduler", "parser": "scheduler"}


def recognise_scheduler_table(head: bytes) -> schedulers.SchedulerTable | None:
    """The scheduler's table that a file holds, judged by its first bytes; None for another file."""
    return schedulers.recognise(head[:SNIFF_BYTES].decode("utf-8-sig", "replace"))


def read_scheduler_table(
    table: schedulers.SchedulerTable, chunks: Iterable[bytes], *, path: str, run_dir: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `scheduler_jobs` in a file, and rows of `rejects`."""
    parts = list(table.read(_lines(chunks)))
    rows = pl.concat([SCHEDULER_JOBS.empty(), *(rows for rows, _ in parts)])
    rejects = pl.concat([REJECTS.empty(), *(REJECTS.conform(rejected) for _, rejected in parts)])
    return (
        rows.with_columns(source_path=pl.lit(path), run_dir=pl.lit(run_dir)),
        rejects.with_columns(file=pl.lit(path), table=pl.lit(SCHEDULER_JOBS.name)),
    )


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    unfinished = b""
    for chunk in itertools.chain(chunks, [b"\n"]):
        *whole, unfinished = (unfinished + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")


def read_history(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a trainer's file of steps, with the settings in it; or of a table that has such a name."""
    data = b"".join(without_utf16(bounded(reader.chunks())))
    name, reason = reader.path.rsplit("/", 1)[-1].lower(), "no reader for this file"
    for dialect in batch.dialects:
        for history in dialect.histories:
            if fnmatch.fnmatch(name, history.pattern):
                try:
                    steps, settings = _history(history, data)
                except ValueError as error:
                    reason = str(error)
                else:
                    batch.histories.append((dialect.name, steps.with_columns(source=pl.lit(source, pl.Int64))))
                    if settings is None:
                        _add_settings(row, reader.path, data, batch)
                    else:
                        batch.add_settings(str(row["unit"]), reader.path, settings)
                    return {"parser": dialect.name}
    if name.endswith(".csv"):
        return {"kind": "bench_csv", **read_table_of(source, row, reader, iter([data]), batch)}
    raise ValueError(reason)


def _history(history: History | BinaryHistory, data: bytes) -> tuple[pl.DataFrame, Mapping[str, str] | None]:
    """Steps of a history, and the settings in it; None where a sidecar's reader may know some. Raises ValueError."""
    if isinstance(history, BinaryHistory):
        tracked = history.read(data)
        return tracked.steps, tracked.settings
    return history.read(data.decode("utf-8-sig", "replace")), None


def _add_settings(row: dict[str, object], path: str, data: bytes, batch: BatchAccumulator) -> None:
    try:
        _, settings = settings_beside(path, data.decode("utf-8-sig", "replace"), batch.dialects)
    except ValueError:  # it has no settings
        return
    batch.add_settings(str(row["unit"]), path, settings)


def read_table(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a table with one run per row, a known one or one of somebody's own."""
    if is_report(reader.path):
        return read_report(row, reader, batch)
    return read_table_of(source, row, reader, without_utf16(reader.chunks()), batch)


def is_known_table(start: str, path: str) -> bool:
    """Whether a text begins like a table of runs, or an export of a tracker's."""
    return any(table.matches(start) for table in TABLES) or is_export(start, stem(path))


def read_table_of(
    source: int, row: dict[str, object], reader: Reader, chunks: Iterator[bytes], batch: BatchAccumulator
) -> dict[str, object]:
    """`read_table` of the given chunks."""
    head = next(chunks, b"")
    table = next((t for t in TABLES if t.matches(head[:SNIFF_BYTES].decode("utf-8-sig", "replace"))), None)
    if jobs := recognise_scheduler_table(head):
        return read_jobs(jobs, row, itertools.chain([head], chunks), batch)
    if table is None:
        start = head[:SNIFF_BYTES].decode("utf-8-sig", "replace")
        if read := formats.reader_of(start):
            return read_bench(source, itertools.chain([head], chunks), batch, read)
        if is_samples(start):
            return read_memory(row, reader, itertools.chain([head], chunks), batch)
        if is_export(start, stem(reader.path)) and not (is_table_of_runs(start) and may_be_runs(start)):
            return read_export(source, reader, itertools.chain([head], chunks), batch)
        return read_own_table(row, itertools.chain([head], chunks), batch, start=start)
    rows, rejects = table.read(text_of(itertools.chain([head], chunks)))
    rows = rows.with_columns(framework=pl.lit(table.framework))
    return add_runs(row, reader.path, rows, rejects, batch, parser=table.name)


def read_memory(
    row: dict[str, object], reader: Reader, chunks: Iterable[bytes], batch: BatchAccumulator
) -> dict[str, object]:
    """Ledger columns of a recording of GPU memory, of any kind that `pipeline.memory` reads."""
    found = read_memory_file(reader.path, without_utf16(chunks), row)
    for name, frame in found.tables.items():
        batch.other.setdefault(name, []).append(frame)
    for line, reason, raw in found.rejects:
        batch.reject(reader.path, line, reason, raw, table=found.table)
    return {"parser": found.parser, **({"status": "skipped", "error": found.skipped} if found.skipped else {})}


def folder_names(sources: pl.DataFrame) -> list[dict[str, str]]:
    """Settings in the name of the run directory, else of the directory and file of a lone log; one set per unit."""
    found: list[dict[str, str]] = []
    units = sources.filter(pl.col("kind").is_in(["log", "history"])).unique("unit", keep="first", maintain_order=True)
    for unit, run_dir, path in units.select("unit", "run_dir", "path").iter_rows():
        names = [run_dir] if unit == run_dir else [run_dir, path]
        merged: dict[str, str] = {}
        for name in names:
            merged |= read_folder_name(name.rsplit("/", 1)[-1])
        found += [
            {"unit": unit, "path": run_dir, "name": key, "value": value, "setting_source": "folder_name"}
            for key, value in merged.items()
        ]
    return found


def read_stated(reader: Reader) -> dict[str, object]:
    """Ledger columns of a `sweepscope.toml`, which discovery has read. Raises ValueError for a damaged one."""
    check_statements(text_of(reader.chunks()), reader.path)
    return {}
