"""What a document states of all runs of a table, above it: in sentences and lists (`8x H100`, `seq len 8192`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sweepscope.pipeline.logs.inference.settings import choose
from sweepscope.pipeline.logs.inference.stated import stated
from sweepscope.pipeline.logs.result_tables.cells import word_of
from sweepscope.pipeline.reference.model_identity import registered_name

_OF_ALL = ("seq_len", "gbs", "gas", "mbs", "accelerator", "num_nodes", "gpus_per_node", "precision", "model")
"""Columns that hold for all runs where a document states one value; degrees of parallelism are what differs."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_EMPHASIS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}(?!\w)")
_FULL_STOP = re.compile(r"\.(?=\s|$)")
_LENGTH = re.compile(r"(?i)\b(seq|sequence|ctx|context) (\d{3,7})\b")
_KIND = re.compile(r"\b([AH]\d00) ?\((?:(\d{2,3}) ?GB,? )?(SXM|PCIe)\d?(?:,? (\d{2,3}) ?GB)?\)")
"""A card with its kind in brackets: `H100 (80GB SXM)`."""
_EXAMPLE = re.compile(r"\s{4,}\S|\s*(?:\$|>>>|#!)")
"""Lines of code: what they do is no run of the table."""


@dataclass(frozen=True)
class StatedAbove:
    """A value for all runs of a table: its column, and the line that states it."""

    column: str
    value: Any
    name: str
    line_no: int
    text: str


def stated_above(lines: Sequence[tuple[int, str]], taken: Collection[int], header: int) -> tuple[StatedAbove, ...]:
    """What the lines above a header state once, or alike, of columns that a table may leave out.

    Args:
        lines: of the document, with their numbers.
        taken: numbers of lines that are of tables.
        header: number of the table's first line.
    """
    above, is_code = [], False
    for number, text in lines:
        if number >= header:
            break
        is_fence = _FENCE.match(text) is not None
        is_code ^= is_fence
        if not (is_code or is_fence or number in taken or _EXAMPLE.match(text)):
            above.append((number, _plain(text)))
    found = []
    for one in choose(each for each in stated(above) if each.form != "option"):
        source = one.sources[0]
        value = word_of(one.column, source.name, one.value) if one.is_used and one.column in _OF_ALL else None
        if value is not None:
            found.append(StatedAbove(one.column, value, source.name or source.printed, source.line_no, source.text))
    if any(one.column == "model" for one in found):
        return tuple(found)
    stating = {one.line_no for one in found}
    return (*found, *_named_by_heading([(no, text) for no, text in above if text.startswith("#") or no in stating]))


def _plain(text: str) -> str:
    """A line in the words that are looked for: no emphasis, a length called so, and a card with its kind in one word.

    >>> _plain("# **Ours** on 8 nodes of H100 (80GB SXM), seq 8192. Tuned")
    '# Ours on 8 nodes of H100-SXM-80GB, seq len 8192; Tuned'
    """
    plain = _LENGTH.sub(r"\1 len \2", _FULL_STOP.sub(";", _EMPHASIS.sub("", text)))
    sizes = (f"-{size}GB" if (size := one[2] or one[4]) else "" for one in _KIND.finditer(plain))
    return _KIND.sub(lambda one: f"{one[1]}-{one[3]}{next(sizes)}", plain)


def _named_by_heading(above: Sequence[tuple[int, str]]) -> Iterator[StatedAbove]:
    """The model that the nearest of these lines names: a heading, or one that states something else of all runs."""
    for number, text in reversed(above):
        words = re.findall(r"[\w.-]*\w", text)
        runs = (" ".join(words[at : at + size]) for size in (3, 2, 1) for at in range(len(words)))
        name = next((name for run in runs if re.search(r"\d", run) and (name := registered_name(run))), None)
        if name:
            yield StatedAbove("model", name, "heading", number, text)
            return
