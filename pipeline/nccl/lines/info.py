"""INFO lines as whole columns: what NCCL prints by the thousand is read at the speed of string kernels.

A line is cut at ` NCCL INFO `. What stands before it repeats (launcher, process, thread), and so does, less often,
what stands behind it: each distinct text is looked at once (see `info_kinds`). Lines that are not of this form
(warnings, glued, cut, without a prefix) are left to `line_reader`, which reads all kinds one line at a time; both must
say the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.lines import watchdog
from sweepscope.pipeline.nccl.lines.block import Block
from sweepscope.pipeline.nccl.lines.distinct import coded, coded_rows
from sweepscope.pipeline.nccl.lines.distinct_lines import ROWS, Lines
from sweepscope.pipeline.nccl.lines.line_reader import ESCAPES, LEAD_CHARS
from sweepscope.pipeline.nccl.lines.messages import BLANKS, HEAD, RAY_COUNT

MIN_LINES = 48
"""Fewer lines are read one by one: a column's fixed cost is that of some ten lines."""

_MAX_LINE_BYTES = 4096
_MARK = " NCCL INFO "
# A launcher's words, host, process, thread, device; as `messages` finds them from the end.
_PREFIX = r"^(.*?)([A-Za-z0-9_.-]{1,255}):([0-9]{1,10}):([0-9]{1,10}) \[(-?[0-9]{1,4})\]$"
_SINGLY = "|".join((*(re.escape(word) for word in watchdog.LITERALS), RAY_COUNT))


@dataclass(frozen=True)
class Info:
    """Regular INFO lines, and the indices of the other ones (`odd`), in order."""

    lines: Lines
    odd: np.ndarray

    @classmethod
    def of(cls, block: Block, at: np.ndarray, *, repeats: bool = True) -> Info:
        """`at`: the lines of the block that hold NCCL. Unless it `repeats`, what they say is taken to be distinct."""
        text = block.text.gather(at)
        is_short = text.str.len_bytes() <= _MAX_LINE_BYTES
        if block.has_escapes and text.str.contains("\x1b", literal=True).any():
            text = text.str.replace_all(ESCAPES, "")
        mark = text.str.find(_MARK, literal=True)
        is_cut = (is_short & mark.is_not_null()).to_numpy()
        places = at[is_cut]
        leads, lead, texts, told = _halves(text.filter(is_cut), mark.filter(is_cut), repeats)
        texts = texts.str.strip_chars_end(BLANKS)
        prefixes, is_prefix = _prefixes(leads)
        is_text = ~texts.str.contains(f"{HEAD}|{_SINGLY}").to_numpy()
        is_regular = is_prefix[lead] & is_text[told]
        places, lead, told = places[is_regular], lead[is_regular], told[is_regular]
        threads, who = _threads(prefixes, lead, block.source[places])
        is_odd = ~is_cut
        is_odd[is_cut] = ~is_regular
        rows = pl.DataFrame({"at": places, "line_no": block.line_no[places], "who": who, "told": told}, schema=ROWS)
        return cls(Lines(rows, texts, threads), at[is_odd])


def _halves(text: pl.Series, mark: pl.Series, repeats: bool) -> tuple[pl.Series, np.ndarray, pl.Series, np.ndarray]:
    """What stands before and behind the mark, coded both."""
    lines = pl.DataFrame({"line": text.cast(pl.Binary), "mark": mark.cast(pl.Int64)})
    line, at = pl.col("line").bin, pl.col("mark")
    halves = lines.select(lead=line.slice(0, at), text=line.slice(at + len(_MARK)))
    leads, lead = coded(halves["lead"])
    texts, told = coded(halves["text"]) if repeats else (halves["text"], np.arange(len(halves)))
    return leads.cast(pl.String), lead, texts.cast(pl.String), told


def _prefixes(leads: pl.Series) -> tuple[pl.DataFrame, np.ndarray]:
    """What each prefix says, and whether it is a regular one."""
    parts = (
        pl.DataFrame({"name": leads})
        .select(pl.col("name").str.extract_groups(_PREFIX).struct.rename_fields(["lead", "host", "pid", "tid", "dev"]))
        .unnest("name")
    )
    lead = pl.col("lead")
    may_hold_row = (lead.str.len_chars() > LEAD_CHARS) & (
        lead.str.contains(printed_table.ROW) | lead.str.contains(printed_table.REST)
    )
    is_regular = pl.col("host").is_not_null() & ~lead.str.contains(HEAD) & ~may_hold_row
    parts = parts.select(
        "host",
        pl.col("pid", "tid", "dev").cast(pl.Int64),
        is_first=lead.str.contains(r"(?:^|[ >:\t)\]])$"),
        is_regular=is_regular.fill_null(value=False),
    )
    return parts.drop("is_regular"), parts["is_regular"].to_numpy()


def _threads(prefixes: pl.DataFrame, lead: np.ndarray, source: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
    """The distinct pairs of prefix and source, and the index of each line's."""
    width = max(1, len(prefixes))
    pairs, who = coded(pl.Series(source * width + lead))
    threads = prefixes[pairs % width].with_columns(source=pairs // width)
    _, process = coded_rows(threads.select("source", "host", "pid"))
    _, thread = coded_rows(threads.select("source", "host", "pid", "tid"))
    return threads.with_columns(process=pl.Series(process), thread=pl.Series(thread)), who
