"""Lines that may hold facts, selected before they are read: most training logs have few or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.facts import Facts, Notes
from sweepscope.pipeline.nccl.lines import collectives, rewrap, watchdog
from sweepscope.pipeline.nccl.lines.block import Block, Part, block_of, parts_as_texts
from sweepscope.pipeline.text.arrow_buffers import buffers_of, texts_of
from sweepscope.pipeline.text.line_templates import LineTemplates

_HEAD_BYTES = 1 << 16


def select_parts(parts: Sequence[Part]) -> tuple[Facts, list[Block]]:
    """Facts of the COLL lines in parts that are full of them, and a block of all else in parts that may hold facts."""
    notes = Notes()
    left = relevant_parts(parts, notes)
    return notes.facts(), [block_of(left)] if left else []


def select_lines(parts: Sequence[Part], lines: pl.DataFrame, counts: np.ndarray) -> tuple[Facts, list[Block]]:
    """The same, with blocks of the lines that may hold facts only.

    Args:
        lines: those of all parts together, as `pipeline.text.lines.split_parts` gives them.
        counts: number of lines of each part.
    """
    notes = Notes()
    templates = LineTemplates.of(lines)
    of_part = np.repeat(np.arange(len(parts)), counts)
    tabular = templates.matching(printed_table.TABULAR_BUT_DIGITS, exactly=printed_table.TABULAR)
    relevant = np.unique(of_part[tabular | templates.matching("NCCL")])
    if not len(relevant):
        return notes.facts(), []
    named = templates.matching("CCL")  # RCCL's banner, too
    named_lines, tables = (np.bincount(of_part[mask], minlength=len(parts)) for mask in (named, tabular))
    is_kept = named | templates.matching(watchdog.CONTEXT)
    begun = np.flatnonzero(templates.answers(rewrap.begin_here))
    pieces = begun[:, None] + np.arange(1, rewrap.MOST_PIECES)
    is_kept[pieces[pieces < len(is_kept)]] = True
    rows = np.flatnonzero((tables > 0)[of_part] & ~is_kept)
    is_kept[rows] = tabular[rows] | templates.text.gather(rows).str.contains(printed_table.CANDIDATE).to_numpy()
    full = [
        number
        for number in relevant.tolist()
        if named_lines[number] * 2 > counts[number] and collectives.is_worth_it(parts[number].data)
    ]
    is_read = np.isin(np.arange(len(parts)), np.setdiff1d(relevant, full))
    kept = np.flatnonzero(is_kept & is_read[of_part])
    numbers = lines[kept].select("source", "line_no")
    selected = Block(
        text=texts_of(*buffers_of(templates.text.gather(kept))),  # a copy: views would keep all bytes of the parts
        part=of_part[kept],
        source=numbers["source"].to_numpy(),
        line_no=numbers["line_no"].to_numpy(),
        has_escapes=bool(templates.matching("\x1b")[kept].any()),
    )
    without_calls = [block_of([_without_calls(parts[number], notes)]) for number in full]
    return notes.facts(), [*without_calls, *([selected] if len(kept) else [])]


def relevant_parts(parts: Sequence[Part], notes: Notes) -> list[Part]:
    """The parts that may hold facts. From those full of COLL lines these are removed and counted in `notes`."""
    return [_without_calls(part, notes) for part, is_one in zip(parts, _may_hold_facts(parts), strict=True) if is_one]


def _may_hold_facts(parts: Sequence[Part]) -> list[bool]:
    """Whether each part may contain NCCL or a table of its benchmarks."""
    has_nccl = [b"NCCL" in part.data[:_HEAD_BYTES] for part in parts]
    others = parts_as_texts([part.data for part, is_found in zip(parts, has_nccl, strict=True) if not is_found])
    found = iter(others.str.contains(f"NCCL|{printed_table.TABULAR}"))
    return [is_found or next(found) for is_found in has_nccl]


def _without_calls(part: Part, notes: Notes) -> Part:
    """The part; if it is full of COLL lines, without them, which are counted in `notes`."""
    if not collectives.is_worth_it(part.data):
        return part
    left = collectives.add_up(part.data, part.first_line, notes.at(part.source), part.numbers)
    data = b"".join(line + b"\n" for _, line in left)
    return Part(part.source, data, part.first_line, np.array([number for number, _ in left], dtype=np.int64))
