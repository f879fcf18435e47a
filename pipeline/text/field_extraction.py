"""Many fields of many lines that look alike: each pattern is run once per layout instead of once per line.

A trainer prints its step lines from one format string, so that most of them differ in nothing but their digits. Lines
have one layout where they are the same once every digit is a 0. A pattern that names no digit cannot tell such lines
apart, so it captures the same places of all of them: it is run on the layout, and the captures are cut out of the
lines there. Lines whose layout hardly any other shares are searched pattern by pattern. The result is what the
patterns would have found one by one: a property test holds both against each other.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import binaries_of, buffers_of
from sweepscope.pipeline.text.digit_free import is_blind
from sweepscope.pipeline.text.line_templates import without_digits
from sweepscope.pipeline.text.string_views import MAX_BYTES, PAD, cut

_FEW_LINES = 256
"""They are searched one by one, which costs less than to find out which are alike."""

_FEW_LAYOUTS = 256
_SHARED = 8
"""Lines that cost about as much, searched one by one in Rust, as their layout in Python."""

_MAX_LAYOUT_BYTES = 4_096
_MAX_KNOWN = 4_096
"""Layouts that are remembered for a set of patterns."""

# What Python's expressions and Rust's take alike: of all else, some are letters or blanks to only one of them. Bars are
# drawn with U+2500 to U+25FF.
_PLAIN = re.compile("[\t -~\u2500-\u25ff]*")


def extract_each(lines: pl.DataFrame, patterns: Mapping[str, str]) -> pl.DataFrame:
    """`lines` with a text column per pattern: what its first group captures in `text`, NULL where it does not match.

    As `text.str.extract(pattern)` for each of them, faster where many lines share a layout.
    """
    return lines.with_columns(captures(lines["text"], patterns))


def captures(text: pl.Series, patterns: Mapping[str, str]) -> pl.DataFrame:
    """What `extract_each` adds to lines with these texts."""
    is_worth_it = text.len() >= _FEW_LINES and not text.null_count()
    blind = {name: pattern for name, pattern in patterns.items() if is_worth_it and is_blind(pattern)}
    found = _captures(text, blind) if blind else {}
    lines = text.to_frame("text")
    return lines.select(
        found[name] if name in found else pl.col("text").str.extract(pattern).alias(name)
        for name, pattern in patterns.items()
    )


def _captures(text: pl.Series, patterns: Mapping[str, str]) -> dict[str, pl.Series]:
    """A column per digit-blind pattern; none at all of more text than can be cut, or of lines without a layout."""
    lines = _alike(text)
    if len(lines.data) > MAX_BYTES or lines.layouts.len() > max(_FEW_LAYOUTS, text.len() // 2):
        return {}
    searches = _searches(tuple(patterns.values()))
    searches.learn(lines)
    places, is_known = searches.places(lines.layouts)
    is_used = (places[:, :, 0] >= 0).any(axis=0)
    columns = cut(lines.data, lines.starts, places[:, is_used], lines.layout_of)
    used = dict(zip(np.flatnonzero(is_used).tolist(), columns, strict=True))
    nothing = pl.Series([None], dtype=pl.String).new_from_index(0, text.len())
    found = {name: used.get(place, nothing).alias(name) for place, name in enumerate(patterns)}
    if is_known.all():
        return found
    others = np.flatnonzero(~is_known[lines.layout_of])
    rest = text[others].to_frame("text")
    said = rest.select(pl.col("text").str.extract(pattern).alias(name) for name, pattern in patterns.items())
    return {name: _with(column, others, said[name]) for name, column in found.items()}


def _with(column: pl.Series, rows: np.ndarray, values: pl.Series) -> pl.Series:
    return column if values.null_count() == values.len() else column.scatter(pl.Series(rows), values)


@dataclass(frozen=True)
class _Alike:
    """Lines by their layout.

    Attributes:
        data: the bytes of all lines in a row, with PAD others before and behind them.
        starts: where in `data` each line begins.
        layouts: each layout once.
        layout_of: the place in `layouts` of each line's.
        sharing: lines of each layout.
    """

    data: np.ndarray
    starts: np.ndarray
    layouts: pl.Series
    layout_of: np.ndarray
    sharing: pl.Series


def _alike(text: pl.Series) -> _Alike:
    pad = pl.Series(text.name, ["0" * PAD])
    data, offsets = buffers_of(pl.concat([pad, text, pad]))
    bounds = offsets[1:-1]
    rows = binaries_of(without_digits(data), bounds).to_frame("layout").with_row_index("row")
    groups = rows.group_by("layout", maintain_order=True).agg("row")
    sharing = groups["row"].list.len()
    layout_of = np.empty(text.len(), dtype=np.int64)
    layout_of[groups["row"].explode().to_numpy()] = np.repeat(np.arange(groups.height), sharing.to_numpy())
    return _Alike(data, bounds[:-1], groups["layout"], layout_of, sharing)


@dataclass(frozen=True)
class _Searches:
    """Patterns, and where their first groups stand in the layouts that were met so far."""

    patterns: Sequence[re.Pattern[str]]
    known: dict[bytes, bytes] = field(default_factory=dict)

    def learn(self, lines: _Alike) -> None:
        """Search the layouts that are worth it."""
        if len(self.known) > _MAX_KNOWN:
            self.known.clear()
        new = [(layout, n) for layout, n in zip(lines.layouts, lines.sharing, strict=True) if layout not in self.known]
        for layout, sharing in new:
            if len(new) <= _FEW_LAYOUTS or sharing >= _SHARED:
                self._search(layout)

    def _search(self, layout: bytes) -> None:
        if len(layout) > _MAX_LAYOUT_BYTES or not _PLAIN.fullmatch(text := layout.decode()):
            return
        places = array("i")
        for pattern in self.patterns:
            hit = pattern.search(text)
            places.extend(hit.span(1) if hit else (-1, -1))
        if not layout.isascii():
            places = array("i", (at if at < 0 else len(text[:at].encode()) for at in places))
        self.known[layout] = places.tobytes()

    def places(self, layouts: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of each pattern's group in each layout, -1 where there is none; and whether they are known."""
        nowhere = array("i", [-1, -1] * len(self.patterns)).tobytes()
        told = [self.known.get(layout) for layout in layouts]
        places = np.frombuffer(b"".join(one or nowhere for one in told), dtype=np.int32)
        return places.reshape(layouts.len(), len(self.patterns), 2), np.array([one is not None for one in told])


@lru_cache(maxsize=128)
def _searches(patterns: tuple[str, ...]) -> _Searches:
    return _Searches([re.compile(pattern) for pattern in patterns])
