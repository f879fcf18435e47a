"""Frames of the memory tables from a file, whose format is detected by its content.

Discovery selects files by name (`names.is_memory_file`). A new format is one module and one entry of `_READERS`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from sweepscope.pipeline.io.bounded import bounded, text_of
from sweepscope.pipeline.memory.gpu_samples.csv_tables import header
from sweepscope.pipeline.memory.gpu_samples.samples import is_samples, read_samples
from sweepscope.pipeline.memory.names import rank_of
from sweepscope.pipeline.memory.profiler import allocator_stats, kineto, timeline
from sweepscope.pipeline.memory.profiler.step_timeline import StepTimeline
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.containers import NO_SNAPSHOT
from sweepscope.pipeline.memory.snapshot.json_snapshot import is_json_snapshot
from sweepscope.schemas import limits
from sweepscope.schemas.registry import TABLES

SNIFF_BYTES = 16 << 10

_PRINTED = re.compile(
    r"\s*(?:[|+=#<-]|\d|\[\d)|(?:GPU|Device|\w{3} \w{3} +\d|\s{4,})\S*|.*\s: |\S+ +\w{3} \w{3} +\d+ [\d:]{8} \d{4}\b"
)
"""A line of a box, of a table, of a list of values, or of when they were printed."""
_PRINTED_SHARE = 0.8


@dataclass(frozen=True)
class MemoryFile:
    """Contents of one file.

    Attributes:
        parser: name of the reader; None for a file that is not read.
        tables: frames by table.
        rejects: line number, reason and text of unreadable lines.
        table: the table of these lines.
        skipped: why the file has no rows.
    """

    parser: str | None
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    rejects: Sequence[tuple[int, str, str]] = ()
    table: str = "memory_snapshots"
    skipped: str | None = None


def read_memory_file(path: str, chunks: Iterable[bytes], location: Mapping[str, object]) -> MemoryFile:
    """Contents of one file.

    Args:
        path: where it is; its name has the rank.
        chunks: its bytes.
        location: `run_dir` and `sweep` as discovery found them.

    Raises:
        ValueError: its format is another one, or it is damaged (RefusedError: a pickle; also one that exceeds a limit).
        LimitError: it is too large.
        InputError: `chunks` cannot be read.
    """
    stream = iter(chunks)
    head = next(stream, b"")
    while 0 < len(head) < SNIFF_BYTES and (chunk := next(stream, b"")):
        head += chunk
    whole = itertools.chain([head], stream)
    reader = next((read for matches, read in _READERS if matches(head)), None)
    if reader is None:
        if path.lower().endswith((".pickle", ".pkl")):
            raise RefusedError("not a pickle of protocol 2 to 5")
        return MemoryFile(None, skipped="holds no memory timeline, trace, statistics, snapshot or GPU samples")
    return reader(path, whole, location)


def is_recording(start: str) -> bool:
    """Whether a text consists of what monitors of GPUs or PyTorch's allocator print, after its beginning.

    False for a document that quotes some of that.
    """
    if not (is_samples(start) or allocator_stats.is_summary(start)):
        return False
    lines = [line for line in start.splitlines() if line.strip()]
    return sum(1 for line in lines if _PRINTED.match(line) or header(line)) >= _PRINTED_SHARE * len(lines)


def _snapshot(path: str, chunks: Iterable[bytes], location: Mapping[str, object]) -> MemoryFile:
    from sweepscope.pipeline.memory.isolation import analyse_limited  # late: most ingests have no snapshot

    try:
        rows = analyse_limited(chunks)
    except RefusedError as error:
        if str(error) == NO_SNAPSHOT:  # most pages are reports of other tools
            return MemoryFile(None, skipped=NO_SNAPSHOT)
        raise
    if not rows["memory_snapshots"]:
        return MemoryFile("memory_snapshot", skipped="a snapshot with no segments and no events: nothing was allocated")
    return MemoryFile("memory_snapshot", frames_of(rows, path, location))


def _trace(path: str, chunks: Iterable[bytes], location: Mapping[str, object]) -> MemoryFile:
    steps = StepTimeline()
    rows, odd = kineto.read_trace(steps.watch(chunks))
    traced = frames_of(steps.rows(), path, location, rank=steps.rank)
    if not rows["memory_snapshots"]:
        if traced:
            return MemoryFile("kineto", traced)
        if odd:
            raise ValueError(f"none of its {odd:,} memory events can be read")
        return MemoryFile(
            None, skipped="a profiler trace without memory events (record with profile_memory=True) and without steps"
        )
    for row in rows["memory_snapshots"]:
        row["warnings"] = f"{odd:,} memory events could not be read" if odd else None
    return MemoryFile("kineto", {**frames_of(rows, path, location), **traced})


def _timeline(path: str, chunks: Iterable[bytes], location: Mapping[str, object]) -> MemoryFile:
    rows = timeline.read_timeline(b"".join(bounded(chunks, limits.STREAMED_BYTES)))
    return MemoryFile("memory_timeline", frames_of(rows, path, location))


def _samples(path: str, chunks: Iterable[bytes], location: Mapping[str, object]) -> MemoryFile:
    frame, rejects = read_samples(text_of(chunks, limits.STREAMED_BYTES))
    frame = frame.with_columns(source_path=pl.lit(path), run_dir=pl.lit(location["run_dir"], pl.String))
    return MemoryFile("gpu_samples", {"gpu_samples": TABLES["gpu_samples"].conform(frame)}, rejects, "gpu_samples")


def _statistics(path: str, chunks: Iterable[bytes], location: Mapping[str, object]) -> MemoryFile:
    text = text_of(chunks, limits.STREAMED_BYTES)
    if allocator_stats.is_summary(text):
        rows = allocator_stats.read_summaries(text)
        return MemoryFile("memory_summary", frames_of({"memory_snapshots": rows}, path, location))
    rows = allocator_stats.read_statistics(text)
    return MemoryFile("memory_stats", frames_of({"memory_snapshots": rows}, path, location))


def frames_of(
    rows: Mapping[str, list[dict[str, Any]] | dict[str, list[Any]]],
    path: str,
    location: Mapping[str, object],
    *,
    rank: int | None = None,
) -> dict[str, pl.DataFrame]:
    """Frames by table from rows or from columns; empty ones are left out. `rank` counts more than that of the path."""
    frames = {}
    for name, values in rows.items():
        if values:
            frame = pl.DataFrame(values, infer_schema_length=None).with_columns(
                source_path=pl.lit(path),
                run_dir=pl.lit(location["run_dir"], pl.String),
                sweep=pl.lit(location["sweep"], pl.String),
                rank=pl.lit(rank_of(path) if rank is None else rank, pl.Int64),
            )
            frames[name] = TABLES[name].conform(frame)
    return frames


def _start(head: bytes) -> str:
    return head[:SNIFF_BYTES].decode("utf-8-sig", "replace")


def _is_binary(head: bytes) -> bool:
    return not head or head.startswith((b"\x80", b"PK\x03\x04")) or b"\0" in head[:SNIFF_BYTES]


def _is_page(head: bytes) -> bool:
    return "<html" in _start(head).lower() or "<script" in _start(head).lower()


def _is_statistics(head: bytes) -> bool:
    return allocator_stats.is_summary(_start(head)) or allocator_stats.is_statistics(_start(head))


# In this order: binary files go to the sandbox, which has the reason why one is no snapshot.
_READERS: tuple[tuple[Callable[[bytes], bool], Callable[..., MemoryFile]], ...] = (
    (_is_binary, _snapshot),
    (is_json_snapshot, _snapshot),
    (timeline.is_timeline, _timeline),
    (lambda head: kineto.is_trace(head[:SNIFF_BYTES]), _trace),
    (lambda head: is_samples(_start(head)), _samples),
    (_is_statistics, _statistics),
    (_is_page, _snapshot),
)
