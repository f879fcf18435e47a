"""The map: blocks of whole lines to facts. Knows who reads which line, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pipeline.nccl import bench, collectives, watchdog, wrapped
from pipeline.nccl.block import Block, Part, block_of, texts_of
from pipeline.nccl.facts import Facts, Notes
from pipeline.nccl.info import MIN_LINES, Info, read_info
from pipeline.nccl.line_reader import LineReader
from pipeline.nccl.raw_calls import raw_calls

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Scan:
    """Blocks to scan in whatever thread. `calls_of` are the files of which every call is wanted, by number."""

    parts: Sequence[Part]
    calls_of: Mapping[int, str]


@dataclass(frozen=True)
class Scanned:
    """Facts of what was scanned; and its calls, as raw_calls.CALLS, where they are wanted.

    Of a `source` that is read in pieces whose first line is taken to be 1, `lines` says how many there were.
    """

    facts: Facts
    calls: pl.DataFrame | None
    source: int | None = None
    lines: int = 0

    def behind(self, lines: int) -> Scanned:
        """The same, numbered as if it stood behind so many lines."""
        calls = None if self.calls is None else self.calls.with_columns(pl.col("line_no") + lines)
        return replace(self, facts=self.facts.behind(lines), calls=calls)


def scan_task(task: Scan) -> Scanned:
    """Scans some blocks."""
    calls = [raw_calls(part, task.calls_of[part.source]) for part in task.parts if part.source in task.calls_of]
    return Scanned(scan_parts(task.parts), pl.concat(calls) if calls else None)


def scan(data: bytes, first_line: int, *, source: int = 0) -> Facts:
    """Facts of a block of whole lines, of which the first has the given number."""
    return scan_parts([Part(source, data, first_line)])


def scan_parts(parts: Sequence[Part]) -> Facts:
    """Facts of blocks of whole lines of any files. Many small ones at once cost little more than one."""
    notes = Notes()
    block = block_of(_of_interest(parts, notes))
    if not len(block.part):
        return notes.facts()  # nothing but calls
    has_nccl = block.text.str.contains("CCL", literal=True).to_numpy()  # RCCL's banner, too
    lines = np.flatnonzero(has_nccl)
    info = Info.of(block, lines) if len(lines) >= MIN_LINES else None
    odd = lines if info is None else info.odd
    reader = LineReader(notes)
    for place, (source, line_no, text) in zip(odd.tolist(), block.lines(odd), strict=True):
        notes.source = source
        reader.line(_unwrapped(block, place, text), line_no, place)
    if info is not None:
        read_info(info, reader)
    reader.finish()
    _read_others(block, np.flatnonzero(~has_nccl), odd, reader)
    return notes.facts()


def sift(parts: Sequence[Part]) -> tuple[Facts, list[Part]]:
    """Facts of the calls in some blocks, and their lines that `scan_parts` looks at: of most training logs, few."""
    notes = Notes()
    told = _of_interest(parts, notes)
    dense = [_is_dense(part.data) for part in told]
    sparse = [part for part, is_dense in zip(told, dense, strict=True) if not is_dense]
    sifted = iter(_sifted(sparse))
    return notes.facts(), [part if is_dense else next(sifted) for part, is_dense in zip(told, dense, strict=True)]


def _is_dense(data: bytes) -> bool:
    """Whether NCCL's lines seem to be so many that looking for them would cost more than it saves."""
    sample = data[:_HEAD_BYTES]
    return sample.count(b"CCL") * 2 > sample.count(b"\n")


def _sifted(parts: Sequence[Part]) -> list[Part]:
    block = block_of(parts)
    text = block.text
    is_kept = text.str.contains(f"CCL|{watchdog.CONTEXT}").to_numpy().copy()
    pieces = np.flatnonzero(wrapped.begin_here(text))[:, None] + np.arange(1, wrapped.MOST_PIECES)
    is_kept[pieces[pieces < len(is_kept)]] = True
    rows = np.flatnonzero(_of_tables(block, np.flatnonzero(text.str.contains(bench.TABULAR).to_numpy())))
    is_kept[rows] |= text.gather(rows).str.contains(f"{bench.TABULAR}|{bench.CANDIDATE}").to_numpy()
    kept = np.flatnonzero(is_kept)
    edges = np.searchsorted(block.part[kept], np.arange(len(parts) + 1))
    of_part = [slice(first, last) for first, last in itertools.pairwise(edges.tolist())]
    told, numbers = text.gather(kept).to_list(), block.line_no[kept]
    return [
        Part(part.source, "".join(told[chosen]).encode(), part.first_line, numbers[chosen])
        for part, chosen in zip(parts, of_part, strict=True)
    ]


def _of_tables(block: Block, tabular: np.ndarray) -> np.ndarray:
    """Whether each line is of a part that has lines of a table, whose indices are given."""
    has_table = np.zeros(block.part.max(initial=0) + 1, dtype=bool)
    has_table[block.part[tabular]] = True
    found: np.ndarray = has_table[block.part]
    return found


def _read_others(block: Block, plain: np.ndarray, odd: np.ndarray, reader: LineReader) -> None:
    """Lines without NCCL, and irregular ones: tables of benchmarks, and what helps to judge a hang."""
    beside = np.sort(np.concatenate((plain, odd)))
    text = block.text.gather(beside)
    context = beside[text.str.contains(watchdog.CONTEXT).to_numpy()]
    watchdog.read_context(block.lines(context), reader.notes)
    rows = plain[_of_tables(block, beside[text.str.contains(bench.TABULAR).to_numpy()])[plain]]
    rows = rows[block.text.gather(rows).str.contains(bench.CANDIDATE).to_numpy()]
    for source, line_no, line in block.lines(rows):
        reader.notes.source = source
        reader.bench_line(line, line_no)


def _unwrapped(block: Block, place: int, text: str) -> str:
    """The line at `place`; one of the watchdog that a terminal has wrapped with the rest of it, from the next lines."""
    if not wrapped.begins(text):
        return text
    behind = range(place + 1, min(place + wrapped.MOST_PIECES, len(block.text)))
    first = int(block.line_no[place]) - place
    rest = [at for at in behind if block.part[at] == block.part[place] and block.line_no[at] - at == first]
    return wrapped.whole(text, block.text.gather(rest).to_list())


def _may_tell(parts: Sequence[Part]) -> list[bool]:
    """Whether NCCL or a table of its benchmarks may stand in each part: most logs have neither, and are done with."""
    told = [b"NCCL" in part.data[:_HEAD_BYTES] for part in parts]
    rest = texts_of([part.data for part, is_told in zip(parts, told, strict=True) if not is_told])
    found = iter(rest.str.contains(f"NCCL|{bench.TABULAR}"))
    return [is_told or next(found) for is_told in told]


def _of_interest(parts: Sequence[Part], notes: Notes) -> list[Part]:
    """The parts that may tell something, without the COLL lines of those that are full of them: these are added up."""
    told = (part for part, is_told in zip(parts, _may_tell(parts), strict=True) if is_told)
    return [_without_calls(part, notes) if collectives.is_worth_it(part.data) else part for part in told]


def _without_calls(part: Part, notes: Notes) -> Part:
    """Adds up the COLL lines of a part that is full of them; returns what is left."""
    rest = collectives.add_up(part.data, part.first_line, notes.at(part.source), part.numbers)
    data = b"".join(line + b"\n" for _, line in rest)
    return Part(part.source, data, part.first_line, np.array([number for number, _ in rest], dtype=np.int64))
