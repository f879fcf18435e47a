"""Read files in which trackers keep several runs: databases in a sandbox, folders of runs, exports.

Reports of Nsight Systems are databases, too: what one is shows when it is open.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from sweepscope.pipeline.errors import InputError, LimitError, NothingYetError
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.io.bounded import bounded, text_of
from sweepscope.pipeline.io.files import exists
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.sandbox import ProcessLimits, Sandbox
from sweepscope.pipeline.logs.trackers import entries, names
from sweepscope.pipeline.logs.trackers.databases import read_runs
from sweepscope.pipeline.logs.trackers.entries import entry_of
from sweepscope.pipeline.logs.trackers.exports import read_csv
from sweepscope.pipeline.logs.trackers.folders import FolderForm, FolderParts, form_of
from sweepscope.pipeline.logs.trackers.sqlite_image import columns_of, opened
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun
from sweepscope.pipeline.logs.trackers.wandb_exports import read_parquet
from sweepscope.pipeline.memory.profiler import nsys
from sweepscope.pipeline.memory.sources import frames_of
from sweepscope.schemas import limits

PARSER = "other"
"""The dialect of runs whose trainer is unknown; its version is that of the code that reads trackers, too."""

_WORK = "sweepscope.pipeline.ingest.read_tracker:read_one"
_THREADS = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_SANDBOX = Sandbox(_WORK, environment=_THREADS, idle_s=30.0)
_LIMITS = ProcessLimits(memory_bytes=4 << 30, cpu_s=600, wall_s=900.0, is_by_size=True)
_ANSWER_BYTES = 256 << 20
_SIZE_BYTES = 8
_NO_CONTENT = {"content_bytes": None, "content_digest": None, "content_head": None}
"""Of a file that is one of many of a run: thousands hold the same value, and are no copies of each other."""


def read_tracker(source: int, row: Mapping[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a file of a tracker. Raises ValueError for a damaged one."""
    if names.is_log(reader.path):
        return {"status": "skipped", "error": "the log of a database, which is read with it", **_NO_CONTENT}
    if form := form_of(reader.path):
        return _read_part(source, form, reader, batch)
    if names.is_table(reader.path):
        data = b"".join(bounded(reader.chunks(), limits.STREAMED_BYTES))
        cells = limits.TABLE_CELLS_PER_BYTE * max(len(data), limits.MIB)
        return _add_runs(source, reader, read_parquet(data, stem(reader.path), most_cells=cells), batch)
    return _read_database(source, row, reader, batch)


def read_export(source: int, reader: Reader, chunks: Iterable[bytes], batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a table that a tracker exports as CSV. Raises ValueError for a damaged one."""
    runs = read_csv(text_of(chunks, limits.STREAMED_BYTES), stem(reader.path))
    if not runs:
        return {"status": "skipped", "error": "values by step, but no loss, rate or time of a training's"}
    return {"kind": "tracker", **_add_runs(source, reader, runs, batch)}


def stem(path: str) -> str:
    """The name of a file without its suffixes."""
    return path.rpartition("/")[2].split(".", 1)[0]


def _add_runs(source: int, reader: Reader, runs: Iterable[TrackedRun], batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a file with these runs."""
    for run in runs:
        name = run.name.replace("/", "_")
        batch.tracked.append((source, f"{reader.path}/{run.number}-{name}", entry_of(run)))
    return {"parser": PARSER}


def _read_part(source: int, form: FolderForm, reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    folder, part, text = form.run_folder(reader.path), form.part_of(reader.path), text_of(reader.chunks())
    form.check(part, text)
    parts = batch.tracked_parts.setdefault(folder, FolderParts(form, {}, {}))
    parts.sources[part], parts.texts[part] = source, text
    return {"parser": PARSER, **({} if form.names_run(part) else _NO_CONTENT)}


def with_folders(batch: BatchAccumulator) -> None:
    """Add the runs of the folders that were read to the batch's entries."""
    for folder, parts in batch.tracked_parts.items():
        run = parts.form.read(parts.texts, folder)
        if run is not None:
            batch.tracked.append((parts.source, folder, entry_of(run)))
    batch.tracked_parts.clear()


def _read_database(
    source: int, row: Mapping[str, object], reader: Reader, batch: BatchAccumulator
) -> dict[str, object]:
    log = b"".join(_log_of(reader.path))  # before the database: what moves over meanwhile is in both then
    data = b"".join(bounded(reader.chunks(), limits.DATABASE_BYTES))
    found = _read_limited(data, log)
    if found is None:
        return {"status": "skipped", "error": "a database of a program that is no tracker", **_NO_CONTENT}
    if isinstance(found, dict):
        return _add_trace(row, reader, found, batch)
    return _add_runs(source, reader, found, batch)


def _add_trace(
    row: Mapping[str, object], reader: Reader, traced: dict[str, Any], batch: BatchAccumulator
) -> dict[str, object]:
    """Ledger columns of a report of Nsight Systems."""
    for name, frame in frames_of(traced, reader.path, row).items():
        batch.other.setdefault(name, []).append(frame)
    columns: dict[str, object] = {"kind": "memory", "parser": nsys.PARSER}
    if not any(traced.values()):
        columns |= {
            "status": "skipped",
            "error": "a report without kernels of NCCL, and without a range named as a step",
        }
    return columns


def _log_of(path: str) -> Iterator[bytes]:
    """The write-ahead log of a database; nothing where there is none."""
    if exists(f"{path}{names.LOG}"):
        try:
            yield from bounded(Reader(f"{path}{names.LOG}", is_hashed=False).chunks(), limits.DATABASE_BYTES)
        except (InputError, NothingYetError):
            return  # it has just gone: the database has all of it


def _read_limited(data: bytes, log: bytes) -> list[TrackedRun] | dict[str, Any] | None:
    """The runs of a database, or rows by table of a trace, by a process of its own. Raises ValueError."""
    answer = _SANDBOX.run([len(data).to_bytes(_SIZE_BYTES), data, log], _LIMITS, answer_bytes=_ANSWER_BYTES)
    kind, rest = answer.raw[:1], answer.raw[1:]
    if answer.exit_code == 0 and len(answer.raw) <= _ANSWER_BYTES:
        if kind == b"R":
            return entries.from_bytes(rest)
        if kind == b"T":
            traced: dict[str, Any] = json.loads(rest)
            return traced
        if kind == b"N":
            return None
        if kind == b"E":
            raise ValueError(json.loads(rest))
    why = "takes too long" if answer.was_late or answer.exit_code < -9 else "takes more memory than its size allows"
    raise LimitError(f"reading it {why}, or ends its reader (exit code {answer.exit_code}). Leave it out.")


def read_one(given: IO[bytes], out: IO[bytes]) -> None:
    """Child side: `R` and the runs, `T` and a trace's rows, `N` for another program's database, or `E` and the reason.

    No frame is made here: in a fork polars would wait for its threads for ever.
    """
    size = int.from_bytes(given.read(_SIZE_BYTES))
    data = given.read(size)
    try:
        with opened(data, given.read()) as connection:
            tables = columns_of(connection)
            if nsys.is_export(tables):
                answer = b"T" + json.dumps(nsys.read_export(connection, tables)).encode()
            else:
                runs = read_runs(connection, tables)
                answer = b"N" if runs is None else b"R" + entries.to_bytes(runs)
    except ValueError as error:
        answer = b"E" + json.dumps(str(error)).encode()
    out.write(answer)
