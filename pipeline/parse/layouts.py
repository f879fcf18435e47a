"""Many fields of many lines that look alike, in one pass instead of one pass per field.

A trainer prints its step lines from one format string, so that they differ in their digits, and where it aligns
columns in the width of a gap and the unit behind a number. The patterns are run once on a sample; what they capture
there becomes the groups of one anchored expression that every line of the same layout matches. Rust's regex engine runs
such an expression as a one-pass automaton, which costs about as much as three patterns that are searched for. Lines of
other layouts get a sample of their own, and what is left is searched pattern by pattern. The result is what the
patterns would have found one by one: a property test holds both against each other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

_MIN_LINES = 256
"""Fewer lines are searched pattern by pattern: building a layout costs as much as searching this many."""

_MAX_LAYOUTS = 12
_MAX_STRAYS = 3
"""Layouts that hardly any line shares, after which lines are taken to have none."""

_MAX_SAMPLE_CHARS = 4_096
_MAX_KNOWN = 1_024
"""Layouts that are remembered."""

_TOKEN = re.compile(
    r"(?P<digits>[0-9]+)|(?P<sign>(?<=[0-9][eE])[-+](?=[0-9]))|(?P<gap> +)|(?P<unit>(?<=[0-9])[KMBGT](?![0-9A-Za-z]))"
    r"|(?P<text>.)",
    re.DOTALL,
)

# Another gap or unit in place of one; of a wide gap, a narrow one.
_OTHERS: dict[str | None, dict[str, str]] = {"gap": {" ": "  "}, "unit": {**dict.fromkeys("MBGT", "K"), "K": "M"}}

_ESCAPED = {character: re.escape(character) for character in map(chr, range(128))}


def extract_each(lines: pl.DataFrame, patterns: Mapping[str, str]) -> pl.DataFrame:
    """`lines` with a text column per pattern: what its first group captures in `text`, NULL where it does not match.

    As `text.str.extract(pattern)` for each of them, faster where many lines share a layout.
    """
    text = lines["text"]
    if text.len() < _MIN_LINES:
        return lines.with_columns(pl.col("text").str.extract(p).alias(name) for name, p in patterns.items())
    parts = [_without_nulls(part) for part in _by_layout(text, patterns)]
    found = parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal").sort("place")
    missing = (pl.lit(None, pl.String).alias(name) for name in patterns if name not in found.columns)
    return lines.with_columns(found.with_columns(missing).select(list(patterns)))


def _without_nulls(part: pl.DataFrame) -> pl.DataFrame:
    """Without the columns of patterns that match nowhere: most patterns are for other layouts, and sorting is dear."""
    return part.select("place", *(name for name in part.columns[1:] if part[name].null_count() < part.height))


def _by_layout(text: pl.Series, patterns: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    """Frames with `place` (row of `text`) and columns of patterns that match, which together cover all rows."""
    rest = pl.DataFrame({"place": np.arange(text.len(), dtype=np.uint32), "text": text})
    strays = 0
    for _ in range(_MAX_LAYOUTS):
        if rest.height < _MIN_LINES or strays == _MAX_STRAYS:
            break
        # The first lines are often odd ones: no speed yet, a compilation.
        layout = _layout_of(rest["text"][rest.height // 2] or "", tuple(patterns.items()))
        if layout is None:
            break
        captured = layout.captured
        found = rest.select("place", "text", hit=pl.col("text").str.extract_groups(layout.expression)).unnest("hit")
        is_mine = found["_end"].is_not_null()
        mine = found.filter(is_mine)
        strays += mine.height * 16 < rest.height
        yield mine.select("place", *(pl.col(group).alias(name) for name, group in captured.items()))
        rest = rest if mine.is_empty() else found.filter(~is_mine).select("place", "text")
        if rest.is_empty():
            return
    yield rest.select("place", *(pl.col("text").str.extract(p).alias(name) for name, p in patterns.items()))


@dataclass(frozen=True)
class _Layout:
    """An expression for lines that look alike, and the group that holds what each pattern captures, if anything."""

    expression: str
    captured: Mapping[str, str]


Patterns = tuple[tuple[str, str], ...]
Span = tuple[int, int]
_known: dict[tuple[Patterns, str], _Layout | None] = {}


def _layout_of(sample: str, patterns: Patterns) -> _Layout | None:
    """The layout of a line: one that is known from a line of the same shape, or its own."""
    key = patterns, _shape(sample)
    if key not in _known:
        if len(_known) >= _MAX_KNOWN:
            del _known[next(iter(_known))]
        _known[key] = _layout(sample, patterns)
    return _known[key]


def _shape(sample: str) -> str:
    """What two lines have in common for which `_layout` gives the same."""
    return _TOKEN.sub(lambda token: _written(token, loose=()), sample[: _MAX_SAMPLE_CHARS + 1])


def _layout(sample: str, patterns: Patterns) -> _Layout | None:
    """The layout of lines like `sample`.

    None where a capture cannot be a group of it: it ends within a number, or overlaps another one.
    """
    if len(sample) > _MAX_SAMPLE_CHARS:
        return None
    spans = _captures(sample, patterns)
    groups = sorted(set(spans.values()), key=lambda span: (span[0], -span[1]))
    if not _are_nested(groups):
        return None
    opening = {span: f"g{number}" for number, span in enumerate(groups)}
    expression = _expression(sample, opening, _loose(sample, patterns, spans))
    return None if expression is None else _Layout(expression, {name: opening[span] for name, span in spans.items()})


def _captures(text: str, patterns: Patterns) -> dict[str, Span]:
    """Where the first group of each pattern that matches stands."""
    found = ((name, re.search(pattern, text)) for name, pattern in patterns)
    return {name: hit.span(1) for name, hit in found if hit and hit.span(1) != (-1, -1)}


def _loose(sample: str, patterns: Patterns, spans: Mapping[str, Span]) -> set[int]:
    """Where the gaps and units begin whose width or letter no pattern minds: with another one, all capture the same."""
    loose = set()
    for token in _TOKEN.finditer(sample):
        if token.lastgroup not in _OTHERS:
            continue
        at, stop = token.span()
        other = _OTHERS[token.lastgroup].get(token[0], " ")
        grown = len(other) - (stop - at)
        moved = {name: tuple(edge + grown * (edge > at) for edge in span) for name, span in spans.items()}
        if _captures(sample[:at] + other + sample[stop:], patterns) == moved:
            loose.add(at)
    return loose


def _are_nested(groups: list[tuple[int, int]]) -> bool:
    """Whether no two spans overlap without one holding the other; `groups` are sorted by begin, longest first."""
    open_ends: list[int] = []
    for begin, end in groups:
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def _expression(sample: str, groups: Mapping[Span, str], loose: Collection[int]) -> str | None:
    """The sample with any digits for digits, any gap or unit for a `loose` one, and named groups."""
    begins: dict[int, list[tuple[int, str]]] = {}
    for (begin, end), name in groups.items():
        begins.setdefault(begin, []).append((end, name))
    ends = [end for _, end in groups]
    boundaries = set(begins) | set(ends)
    out = ["^"]
    for token in _TOKEN.finditer(sample):
        at, stop = token.span()
        if stop - at > 1 and any(boundary in boundaries for boundary in range(at + 1, stop)):
            return None
        if at in boundaries:
            out.append(_marks(at, begins, ends))
        out.append(_written(token, loose))
    out.append(_marks(len(sample), begins, ends))
    return "".join([*out, "(?P<_end>)$"])


def _written(token: re.Match[str], loose: Collection[int]) -> str:
    """What a token may be in other lines of the layout, as an expression."""
    at, stop = token.span()
    if token.lastgroup == "digits":
        # A cut line ends within its last number: there the count of digits tells.
        return f"[0-9]{{{stop - at}}}" if stop == len(token.string) else "[0-9]+"
    if token.lastgroup == "sign":
        return "[-+]"
    if token.lastgroup == "gap":
        return " +" if at in loose else " {2,}" if stop - at > 1 else " "
    if token.lastgroup == "unit" and at in loose:
        return "[KMBGT]"
    return _ESCAPED.get(token[0], token[0])


def _marks(at: int, begins: Mapping[int, list[tuple[int, str]]], ends: list[int]) -> str:
    """Groups that close and open before the character at `at`; empty ones do both."""
    opened = begins.get(at, [])
    empty = [name for end, name in opened if end == at]
    whole = [name for end, name in opened if end > at]
    closing = ends.count(at) - len(empty)
    return ")" * closing + "".join(f"(?P<{name}>)" for name in empty) + "".join(f"(?P<{name}>" for name in whole)
