"""The map: blocks of whole lines to facts. Knows who reads which line, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.nccl import bench, collectives, watchdog
from pipeline.nccl.block import Block, Part, block_of
from pipeline.nccl.facts import Facts, Notes
from pipeline.nccl.info import MIN_LINES, Info, read_info
from pipeline.nccl.line_reader import LineReader


def scan(data: bytes, first_line: int, *, source: int = 0) -> Facts:
    """Facts of a block of whole lines, of which the first has the given number."""
    return scan_parts([Part(source, data, first_line)])


def scan_parts(parts: Sequence[Part]) -> Facts:
    """Facts of blocks of whole lines of any files. Many small ones at once cost little more than one."""
    notes = Notes()
    told = [part for part, is_told in zip(parts, _may_tell(parts), strict=True) if is_told]
    block = block_of([_without_calls(part, notes) if collectives.is_worth_it(part.data) else part for part in told])
    has_nccl = block.text.str.contains("NCCL", literal=True).to_numpy()
    has_table = block.text.str.contains(bench.TABULAR).to_numpy()
    in_tables = np.isin(block.part, np.unique(block.part[has_table]))
    of_interest = in_tables | np.isin(block.part, np.unique(block.part[has_nccl]))
    if not of_interest.any():
        return notes.facts()
    watchdog.read_context(block.lines(_holding(block, watchdog.CONTEXT, of_interest)), notes)
    reader = LineReader(notes)
    rows = _holding(block, bench.CANDIDATE, in_tables & ~has_nccl)
    for source, line_no, text in block.lines(rows):
        notes.source = source
        reader.bench_line(text, line_no)
    _read_nccl(block, np.flatnonzero(has_nccl), reader)
    reader.finish()
    return notes.facts()


def _may_tell(parts: Sequence[Part]) -> list[bool]:
    """Whether NCCL or a table of its benchmarks may stand in each part: most logs have neither, and are done with."""
    try:
        texts = pl.Series([part.data for part in parts], dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:  # not UTF-8 somewhere
        texts = pl.Series([part.data.decode("utf-8", errors="replace") for part in parts], dtype=pl.String)
    found: list[bool] = texts.str.contains(f"NCCL|{bench.TABULAR}").to_list()
    return found


def _without_calls(part: Part, notes: Notes) -> Part:
    """Adds up the COLL lines of a part that is full of them; returns what is left."""
    rest = collectives.add_up(part.data, part.first_line, notes.at(part.source))
    data = b"".join(line + b"\n" for _, line in rest)
    return Part(part.source, data, part.first_line, np.array([number for number, _ in rest], dtype=np.int64))


def _holding(block: Block, pattern: str, within: np.ndarray) -> np.ndarray:
    """Indices of the lines that hold a pattern."""
    chosen = np.flatnonzero(within)
    if not len(chosen):
        return chosen
    text = block.text if len(chosen) == len(block.text) else block.text.gather(chosen)
    holds: np.ndarray = chosen[text.str.contains(pattern).to_numpy()]
    return holds


def _read_nccl(block: Block, lines: np.ndarray, reader: LineReader) -> None:
    info = Info.of(block, lines) if len(lines) >= MIN_LINES else None
    odd = lines if info is None else info.odd
    for place, (source, line_no, text) in zip(odd.tolist(), block.lines(odd), strict=True):
        reader.notes.source = source
        reader.line(text, line_no, place)
    if info is not None:
        read_info(info, reader)
