"""The map: blocks of whole lines to facts. Knows who reads which line, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.facts import Facts, Notes
from sweepscope.pipeline.nccl.lines import collectives, rewrap, watchdog
from sweepscope.pipeline.nccl.lines.block import Block, Part, block_of, parts_as_texts
from sweepscope.pipeline.nccl.lines.info_kinds import read_info
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.nccl.lines.irregular_lines import MAY_HOLD_FACTS, IrregularLines
from sweepscope.pipeline.nccl.lines.messages import MAX_LINE_CHARS
from sweepscope.pipeline.nccl.lines.raw_calls import raw_calls
from sweepscope.pipeline.nccl.lines.regular_lines import regular_lines
from sweepscope.pipeline.text.arrow_buffers import buffers_of, texts_of
from sweepscope.pipeline.text.line_templates import LineTemplates

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


def scan_parts(parts: Sequence[Part]) -> Facts:
    """Facts of blocks of whole lines of any files. Many small ones at once cost little more than one."""
    notes = Notes()
    return _scanned(block_of(_of_interest(parts, notes)), notes)


def scan_blocks(blocks: Sequence[Block]) -> Facts:
    """Facts of what `sift` or `without_calls` has left: nothing but lines that may tell something."""
    return _scanned(Block.joined(blocks), Notes())


def _scanned(block: Block, notes: Notes) -> Facts:
    if not len(block.part):
        return notes.facts()  # nothing but calls
    has_nccl = block.text.str.contains("CCL", literal=True).to_numpy()  # RCCL's banner, too
    regular, others = regular_lines(block, np.flatnonzero(has_nccl))
    reader = IrregularLines(notes)
    irregular = _holding(block, others, f"{MAY_HOLD_FACTS}|{rewrap.BEGINS}")
    for position, (source, line_no, text) in zip(irregular.tolist(), block.lines(irregular), strict=True):
        notes.source = source
        reader.line(_unwrapped(block, position, text), line_no, position)
    read_info(InfoLines.joined([regular, reader.info_lines()]), notes)
    reader.finish()
    _read_others(block, np.flatnonzero(~has_nccl), others, reader)
    return notes.facts()


def sift(parts: Sequence[Part], lines: pl.DataFrame, counts: np.ndarray) -> tuple[Facts, list[Block]]:
    """Facts of the calls in some blocks, and their lines that `scan_blocks` looks at: of most training logs, few.

    Args:
        lines: those of all parts together, as `pipeline.text.lines.split_parts` gives them.
        counts: how many each part has.
    """
    notes = Notes()
    templates = LineTemplates.of(lines)
    of_part = np.repeat(np.arange(len(parts)), counts)
    tabular = templates.matching(printed_table.TABULAR_BUT_DIGITS, exactly=printed_table.TABULAR)
    told = np.unique(of_part[tabular | templates.matching("NCCL")])
    if not len(told):
        return notes.facts(), []
    named = templates.matching("CCL")  # RCCL's banner, too
    named_lines, tables = (np.bincount(of_part[mask], minlength=len(parts)) for mask in (named, tabular))
    is_kept = named | templates.matching(watchdog.CONTEXT)
    begun = np.flatnonzero(templates.answers(rewrap.begin_here))
    pieces = begun[:, None] + np.arange(1, rewrap.MOST_PIECES)
    is_kept[pieces[pieces < len(is_kept)]] = True
    rows = np.flatnonzero((tables > 0)[of_part] & ~is_kept)
    is_kept[rows] = tabular[rows] | templates.text.gather(rows).str.contains(printed_table.CANDIDATE).to_numpy()
    full = [at for at in told.tolist() if named_lines[at] * 2 > counts[at] and collectives.is_worth_it(parts[at].data)]
    is_read = np.isin(np.arange(len(parts)), np.setdiff1d(told, full))
    kept = np.flatnonzero(is_kept & is_read[of_part])
    numbers = lines[kept].select("source", "line_no")
    rest = Block(
        text=texts_of(*buffers_of(templates.text.gather(kept))),  # a hold on the blocks would keep all of their bytes
        part=of_part[kept],
        source=numbers["source"].to_numpy(),
        line_no=numbers["line_no"].to_numpy(),
        has_escapes=bool(templates.matching("\x1b")[kept].any()),
    )
    calls = [block_of([_without_calls(parts[at], notes)]) for at in full]
    return notes.facts(), [*calls, *([rest] if len(kept) else [])]


def _of_tables(block: Block, tabular: np.ndarray) -> np.ndarray:
    """Whether each line is of a part that has lines of a table, whose indices are given."""
    has_table = np.zeros(block.part.max(initial=0) + 1, dtype=bool)
    has_table[block.part[tabular]] = True
    found: np.ndarray = has_table[block.part]
    return found


def _read_others(block: Block, plain: np.ndarray, odd: np.ndarray, reader: IrregularLines) -> None:
    """Lines without NCCL, and irregular ones: tables of benchmarks, and what helps to judge a hang."""
    beside = np.sort(np.concatenate((plain, odd)))
    text = block.text.gather(beside)
    context = beside[text.str.contains(watchdog.CONTEXT).to_numpy()]
    watchdog.read_context(block.lines(context), reader.notes)
    rows = plain[_of_tables(block, beside[text.str.contains(printed_table.TABULAR).to_numpy()])[plain]]
    rows = rows[block.text.gather(rows).str.contains(printed_table.CANDIDATE).to_numpy()]
    rows = _holding(block, rows, printed_table.TELLING)
    for source, line_no, line in block.lines(rows):
        reader.notes.source = source
        reader.bench_line(line, line_no)


def _holding(block: Block, lines: np.ndarray, pattern: str) -> np.ndarray:
    """Those lines in which `line_reader`, which sees neither colours nor a long line's end, may find the pattern."""
    text = block.text.gather(lines)
    may_hold = text.str.contains(pattern) | (text.str.len_bytes() > MAX_LINE_CHARS)
    if block.has_escapes:
        may_hold |= text.str.contains("\x1b", literal=True)
    found: np.ndarray = lines[may_hold.to_numpy()]
    return found


def _unwrapped(block: Block, place: int, text: str) -> str:
    """The line at `place`; one of the watchdog that a terminal has wrapped with the rest of it, from the next lines."""
    if not rewrap.begins(text):
        return text
    behind = range(place + 1, min(place + rewrap.MOST_PIECES, len(block.text)))
    first = int(block.line_no[place]) - place
    rest = [at for at in behind if block.part[at] == block.part[place] and block.line_no[at] - at == first]
    return rewrap.whole(text, block.text.gather(rest).to_list())


def _may_tell(parts: Sequence[Part]) -> list[bool]:
    """Whether NCCL or a table of its benchmarks may stand in each part: most logs have neither, and are done with."""
    told = [b"NCCL" in part.data[:_HEAD_BYTES] for part in parts]
    rest = parts_as_texts([part.data for part, is_told in zip(parts, told, strict=True) if not is_told])
    found = iter(rest.str.contains(f"NCCL|{printed_table.TABULAR}"))
    return [is_told or next(found) for is_told in told]


def without_calls(parts: Sequence[Part]) -> tuple[Facts, list[Block]]:
    """Facts of the calls in some blocks, and what else stands in those that may tell something."""
    notes = Notes()
    left = _of_interest(parts, notes)
    return notes.facts(), [block_of(left)] if left else []


def _of_interest(parts: Sequence[Part], notes: Notes) -> list[Part]:
    """The parts that may tell something, without the COLL lines of those that are full of them: these are added up."""
    told = (part for part, is_told in zip(parts, _may_tell(parts), strict=True) if is_told)
    return [_without_calls(part, notes) for part in told]


def _without_calls(part: Part, notes: Notes) -> Part:
    """Adds up the COLL lines of a part if it is full of them; returns what is left."""
    if not collectives.is_worth_it(part.data):
        return part
    rest = collectives.add_up(part.data, part.first_line, notes.at(part.source), part.numbers)
    data = b"".join(line + b"\n" for _, line in rest)
    return Part(part.source, data, part.first_line, np.array([number for number, _ in rest], dtype=np.int64))
