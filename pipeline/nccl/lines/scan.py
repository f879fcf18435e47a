"""The map: facts of blocks of whole lines. Passes each line to its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.facts import Facts, Notes
from sweepscope.pipeline.nccl.lines import rewrap, watchdog
from sweepscope.pipeline.nccl.lines.block import Block, Part, block_of
from sweepscope.pipeline.nccl.lines.info_kinds import read_info
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.nccl.lines.irregular_lines import MAY_HOLD_FACTS, IrregularLines
from sweepscope.pipeline.nccl.lines.messages import MAX_LINE_CHARS
from sweepscope.pipeline.nccl.lines.raw_calls import raw_calls
from sweepscope.pipeline.nccl.lines.regular_lines import regular_lines
from sweepscope.pipeline.nccl.lines.selection import relevant_parts


@dataclass(frozen=True)
class Scan:
    """Blocks to scan, in any process. `calls_of`: paths by source of the files of which every call is wanted."""

    parts: Sequence[Part]
    calls_of: Mapping[int, str]


@dataclass(frozen=True)
class Scanned:
    """Facts of what was scanned, and its calls (`raw_calls.CALLS`) where they are wanted.

    Of a piece of a file whose first line was numbered 1, `source` is the file and `lines` the number of its lines.
    """

    facts: Facts
    calls: pl.DataFrame | None
    source: int | None = None
    lines: int = 0

    def shifted(self, lines: int) -> Scanned:
        """The same, numbered as if so many lines came before."""
        calls = None if self.calls is None else self.calls.with_columns(pl.col("line_no") + lines)
        return replace(self, facts=self.facts.shifted(lines), calls=calls)


def scan_task(task: Scan) -> Scanned:
    """Facts, and calls where they are wanted, of some blocks."""
    calls = [raw_calls(part, task.calls_of[part.source]) for part in task.parts if part.source in task.calls_of]
    return Scanned(scan_parts(task.parts), pl.concat(calls) if calls else None)


def scan_parts(parts: Sequence[Part]) -> Facts:
    """Facts of blocks of whole lines of any files. A pass over many small ones costs little more than over one."""
    notes = Notes()
    return _scanned(block_of(relevant_parts(parts, notes)), notes)


def scan_blocks(blocks: Sequence[Block]) -> Facts:
    """Facts of blocks that `selection` has left."""
    return _scanned(Block.joined(blocks), Notes())


def _scanned(block: Block, notes: Notes) -> Facts:
    if not len(block.part):
        return notes.facts()  # nothing but calls
    has_nccl = block.text.str.contains("CCL", literal=True).to_numpy()  # RCCL's banner, too
    regular, others = regular_lines(block, np.flatnonzero(has_nccl))
    reader = IrregularLines(notes)
    irregular = _matching(block, others, f"{MAY_HOLD_FACTS}|{rewrap.BEGINS}")
    for position, (source, line_no, text) in zip(irregular.tolist(), block.lines(irregular), strict=True):
        notes.source = source
        reader.line(_unwrapped(block, position, text), line_no, position)
    read_info(InfoLines.joined([regular, reader.info_lines()]), notes)
    reader.finish()
    _read_others(block, np.flatnonzero(~has_nccl), others, reader)
    return notes.facts()


def _of_tables(block: Block, tabular: np.ndarray) -> np.ndarray:
    """A mask of the lines of parts that have one of the lines at `tabular`."""
    has_table = np.zeros(block.part.max(initial=0) + 1, dtype=bool)
    has_table[block.part[tabular]] = True
    found: np.ndarray = has_table[block.part]
    return found


def _read_others(block: Block, plain: np.ndarray, irregular: np.ndarray, reader: IrregularLines) -> None:
    """Read tables of benchmarks in lines without NCCL, and what helps to judge a hang in these and irregular ones."""
    others = np.sort(np.concatenate((plain, irregular)))
    text = block.text.gather(others)
    context = others[text.str.contains(watchdog.CONTEXT).to_numpy()]
    watchdog.read_context(block.lines(context), reader.notes)
    rows = plain[_of_tables(block, others[text.str.contains(printed_table.TABULAR).to_numpy()])[plain]]
    rows = rows[block.text.gather(rows).str.contains(printed_table.CANDIDATE).to_numpy()]
    rows = _matching(block, rows, printed_table.MAY_HOLD_FACTS)
    for source, line_no, line in block.lines(rows):
        reader.notes.source = source
        reader.bench_line(line, line_no)


def _matching(block: Block, lines: np.ndarray, pattern: str) -> np.ndarray:
    """The lines that may match the pattern once `messages.clean` has removed colours and the end of a long line."""
    text = block.text.gather(lines)
    may_hold = text.str.contains(pattern) | (text.str.len_bytes() > MAX_LINE_CHARS)
    if block.has_escapes:
        may_hold |= text.str.contains("\x1b", literal=True)
    found: np.ndarray = lines[may_hold.to_numpy()]
    return found


def _unwrapped(block: Block, position: int, text: str) -> str:
    """The line at `position`, joined with the next ones if it is one of the watchdog that a terminal has wrapped."""
    if not rewrap.begins(text):
        return text
    following = range(position + 1, min(position + rewrap.MOST_PIECES, len(block.text)))
    offset, part = int(block.line_no[position]) - position, block.part[position]
    adjacent = [at for at in following if block.part[at] == part and block.line_no[at] - at == offset]
    return rewrap.whole(text, block.text.gather(adjacent).to_list())
