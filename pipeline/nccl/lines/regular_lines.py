"""Regular INFO lines as columns: cut at ` NCCL INFO `, with prefix and text looked at once each.

Lines of another form (warnings, glued, cut, without a prefix) are left to `irregular_lines`, which finds the messages
in them one line at a time; both give `InfoLines`, which `info_kinds` reads. Why this is fast:
docs/performance.md, "NCCL lines".
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.lines import watchdog
from sweepscope.pipeline.nccl.lines.block import Block
from sweepscope.pipeline.nccl.lines.distinct import coded
from sweepscope.pipeline.nccl.lines.info_lines import ROWS, InfoLines
from sweepscope.pipeline.nccl.lines.messages import BLANKS, ESCAPES, HEAD, LEAD_CHARS, RAY_COUNT

_MAX_LINE_BYTES = 4096
_MARK = " NCCL INFO "
# A launcher's text, host, process, thread, device; as `messages` finds them from the end.
_PREFIX = r"^(.*?)([A-Za-z0-9_.-]{1,255}):([0-9]{1,10}):([0-9]{1,10}) \[-?[0-9]{1,4}\]$"
_IRREGULAR = "|".join((HEAD, *(re.escape(word) for word in watchdog.LITERALS), RAY_COUNT))


def regular_lines(block: Block, positions: np.ndarray, *, repeats: bool = True) -> tuple[InfoLines, np.ndarray]:
    """The regular INFO lines at some positions of a block, and the positions of all others.

    Args:
        positions: of the lines that hold NCCL.
        repeats: whether texts are likely to repeat; if not, each line keeps its own.
    """
    text = block.text.gather(positions)
    is_short = text.str.len_bytes() <= _MAX_LINE_BYTES
    if block.has_escapes and text.str.contains("\x1b", literal=True).any():
        text = text.str.replace_all(ESCAPES, "")
    mark = text.str.find(_MARK, literal=True)
    has_mark = (is_short & mark.is_not_null()).to_numpy()
    leads, lead_id, texts, text_id = _halves(text.filter(has_mark), mark.filter(has_mark), repeats)
    texts = texts.str.strip_chars_end(BLANKS)
    fields, is_prefix = _prefixes(leads)
    is_text = ~texts.str.contains(_IRREGULAR).to_numpy()
    is_whole = is_prefix[lead_id] & is_text[text_id]
    is_regular = has_mark.copy()
    is_regular[has_mark] = is_whole
    found = positions[is_regular]
    prefixes, prefix_id = _by_source(fields, lead_id[is_whole], block.source[found])
    rows = {"position": found, "line_no": block.line_no[found], "prefix_id": prefix_id, "text_id": text_id[is_whole]}
    is_cut = np.zeros(len(texts), dtype=bool)
    return InfoLines(pl.DataFrame(rows, schema=ROWS), texts, is_cut, prefixes), positions[~is_regular]


def _halves(text: pl.Series, mark: pl.Series, repeats: bool) -> tuple[pl.Series, np.ndarray, pl.Series, np.ndarray]:
    """What precedes and what follows the mark: distinct values and the index of each line's, twice."""
    lines = pl.DataFrame({"line": text.cast(pl.Binary), "mark": mark.cast(pl.Int64)})
    line, at = pl.col("line").bin, pl.col("mark")
    halves = lines.select(lead=line.slice(0, at), text=line.slice(at + len(_MARK)))
    leads, lead_id = coded(halves["lead"])
    texts, text_id = coded(halves["text"]) if repeats else (halves["text"], np.arange(len(halves)))
    return leads.cast(pl.String), lead_id, texts.cast(pl.String), text_id


def _prefixes(leads: pl.Series) -> tuple[pl.DataFrame, np.ndarray]:
    """`host`, `pid`, `tid`, `is_first` of what precedes the mark, and whether it is a regular prefix."""
    fields = ["lead", "host", "pid", "tid"]
    parts = leads.str.extract_groups(_PREFIX).struct.rename_fields(fields).struct.unnest()
    lead = pl.col("lead")
    may_hold_row = (lead.str.len_chars() > LEAD_CHARS) & (
        lead.str.contains(printed_table.ROW) | lead.str.contains(printed_table.TORN_HALF)
    )
    is_regular = pl.col("host").is_not_null() & ~lead.str.contains(HEAD) & ~may_hold_row
    parts = parts.select(
        "host",
        pl.col("pid", "tid").cast(pl.Int64),
        is_first=lead.str.contains(r"(?:^|[ >:\t)\]])$"),
        is_regular=is_regular.fill_null(value=False),
    )
    return parts.drop("is_regular"), parts["is_regular"].to_numpy()


def _by_source(leads: pl.DataFrame, lead_id: np.ndarray, source: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
    """The distinct pairs of file and prefix, and the index of each line's."""
    width = max(1, len(leads))
    pairs, prefix_id = coded(pl.Series(source * width + lead_id))
    return leads[pairs % width].with_columns(source=pairs // width), prefix_id
