"""Plain files cut into regions of whole lines without being read: the process that scans a region reads it.

The number of its lines is known once it was scanned; the lines of regions after it are numbered then. Why this is
fast: docs/performance.md, "NCCL lines".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from sweepscope.pipeline.io import stream
from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES, is_binary, may_be_transcoded
from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines.block import Part
from sweepscope.pipeline.nccl.lines.scan import Scan, Scanned, scan_task
from sweepscope.pipeline.text import lines

_PROBE_BYTES = 64 << 10
"""Bytes before a cut in which a line feed is searched."""


@dataclass(frozen=True)
class Region:
    """Whole lines of a file. `with_calls`: every call is wanted."""

    source: int
    path: str
    begin: int
    end: int
    with_calls: bool


def scan_any(task: Scan | Region) -> Scanned:
    """Facts of some blocks, or of a region whose first line is taken to be 1.

    Raises OSError where a file that had regions can no longer be read. It ends the whole scan, which has moved on to
    another file by then.
    """
    if isinstance(task, Scan):
        return scan_task(task)
    parts, count = [], 0
    for data, first_line, _ in lines.blocks(_chunks(task)):
        wanted = {task.source: task.path} if task.with_calls else {}
        parts.append(scan_task(Scan([Part(task.source, data, first_line)], wanted)))
        count = first_line - 1 + lines.count(data)
    calls = [part.calls for part in parts if part.calls is not None]
    facts = Facts.merge(part.facts for part in parts)
    return Scanned(facts, pl.concat(calls) if calls else None, source=task.source, lines=count)


def regions_of(source: int, path: str, *, with_calls: bool) -> list[Region]:
    """Regions of about `stream.CHUNK_BYTES` that cover a file; none for one that must be read as a whole: compressed,
    UTF-16, of a container, beginning with a hole, binary, small, or remote."""
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(SNIFF_BYTES)
            is_plain = not (head[:1] == b"\0" or stream.is_packed(head) or may_be_transcoded(head) or is_binary(head))
            if size < 2 * stream.CHUNK_BYTES or not is_plain:
                return []
            cuts = [0, *_cuts(file.fileno(), size), size]
    except OSError:
        return []
    return [Region(source, path, begin, end, with_calls) for begin, end in pairwise(cuts) if begin < end]


def _cuts(file: int, size: int) -> Iterator[int]:
    """Offsets after line feeds, about one chunk apart; farther where a line is longer than a probe."""
    at, width = stream.CHUNK_BYTES, min(_PROBE_BYTES, stream.CHUNK_BYTES)
    while at < size:
        probe = os.pread(file, width, at - width)
        if end := probe.rfind(b"\n") + 1:
            at += end - len(probe)
            yield at
        at += stream.CHUNK_BYTES


def _chunks(region: Region) -> Iterator[bytes]:
    with open(region.path, "rb", buffering=0) as file:
        file.seek(region.begin)
        while (at := file.tell()) < region.end and (data := file.read(min(stream.CHUNK_BYTES, region.end - at))):
            yield data
