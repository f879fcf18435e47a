"""Fields of many similar lines: a pattern is run once per template (all digits 0) and cuts the same span of its lines.

The result is that of running every pattern on every line, which a property test checks. Why this is fast:
docs/performance.md, "Field extraction".
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
from sweepscope.pipeline.text.line_templates import LineTemplates, without_digits
from sweepscope.pipeline.text.string_views import MAX_BYTES, PAD, cut
from sweepscope.pipeline.text.word_boundaries import in_python

_FEW_LINES = 256
"""So few lines are searched one by one, which costs less than grouping them."""

_FEW_TEMPLATES = 256
_SHARED = 8
"""Lines whose search in Rust costs about as much as that of their template in Python."""

_MAX_TEMPLATE_BYTES = 4_096
_MAX_KNOWN = 4_096
"""Templates that are remembered for a set of patterns."""

# Characters that Python's and Rust's expressions classify alike; some others are letters or blanks to only one of them.
# Bars are drawn with U+2500 to U+25FF.
_PLAIN = re.compile("[\t -~\u2500-\u25ff]*")


def extract_each(lines: pl.DataFrame, patterns: Mapping[str, str]) -> pl.DataFrame:
    """`lines` with a text column per pattern: what its first group captures in `text`, NULL where it does not match.

    Equals `text.str.extract(pattern)` for each of them, faster where many lines share a template, and faster still
    where the lines have a column `template`: then they need not be compared to find which do.
    """
    template = lines["template"] if "template" in lines.columns else None
    return lines.with_columns(captures(lines["text"], patterns, template))


def captures(text: pl.Series, patterns: Mapping[str, str], template: pl.Series | None = None) -> pl.DataFrame:
    """The columns that `extract_each` adds to lines with these texts, and these hashes of their templates."""
    is_worth_it = text.len() >= _FEW_LINES and not text.null_count()
    blind = {name: in_python(pattern) for name, pattern in patterns.items()} if is_worth_it else {}
    blind = {name: pattern for name, pattern in blind.items() if is_blind(pattern)}
    found = _captures(text, patterns, blind, template) if blind else {}
    lines = text.to_frame("text")
    return lines.select(
        found[name] if name in found else pl.col("text").str.extract(pattern).alias(name)
        for name, pattern in patterns.items()
    )


def _captures(
    text: pl.Series, patterns: Mapping[str, str], blind: Mapping[str, str], template: pl.Series | None
) -> dict[str, pl.Series]:
    """A column per digit-blind pattern; none if there is too much text to cut, or if hardly any lines are alike.

    `blind` are those of `patterns`, in Python's syntax.
    """
    lines = _alike(text) if template is None else _known_alike(text, template)
    if len(lines.data) > MAX_BYTES or lines.templates.len() > max(_FEW_TEMPLATES, text.len() // 2):
        return {}
    searches = _searches(tuple(blind.values()))
    searches.learn(lines)
    spans, is_known = searches.spans(lines.templates)
    is_used = (spans[:, :, 0] >= 0).any(axis=0)
    columns = cut(lines.data, lines.starts, spans[:, is_used], lines.template_of)
    used = dict(zip(np.flatnonzero(is_used).tolist(), columns, strict=True))
    nothing = pl.Series([None], dtype=pl.String).new_from_index(0, text.len())
    found = {name: used.get(index, nothing).alias(name) for index, name in enumerate(blind)}
    if is_known.all():
        return found
    others = np.flatnonzero(~is_known[lines.template_of])
    remaining = text[others].to_frame("text")
    extracted = remaining.select(pl.col("text").str.extract(patterns[name]).alias(name) for name in blind)
    return {name: _with(column, others, extracted[name]) for name, column in found.items()}


def _with(column: pl.Series, rows: np.ndarray, values: pl.Series) -> pl.Series:
    return column if values.null_count() == values.len() else column.scatter(pl.Series(rows), values)


@dataclass(frozen=True)
class _Alike:
    """Lines by their template.

    Attributes:
        data: the concatenated bytes of all lines, with PAD others before and behind them.
        starts: where in `data` each line begins.
        templates: each template once.
        template_of: the index in `templates` of each line's.
        sharing: number of lines of each template.
    """

    data: np.ndarray
    starts: np.ndarray
    templates: pl.Series
    template_of: np.ndarray
    sharing: pl.Series


def _padded(text: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """`_Alike.data`, and where in it each line begins and the last one ends."""
    pad = pl.Series(text.name, ["0" * PAD])
    data, offsets = buffers_of(pl.concat([pad, text, pad]))
    return data, offsets[1:-1]


def _known_alike(text: pl.Series, template: pl.Series) -> _Alike:
    """Lines by the hashes of their templates."""
    data, bounds = _padded(text)
    of_lines = LineTemplates.of(pl.DataFrame([text.alias("text"), template.alias("template")]))
    samples, template_of = of_lines.numbered()
    texts, offsets = buffers_of(samples)
    sharing = pl.Series(np.bincount(template_of, minlength=samples.len()))
    return _Alike(data, bounds[:-1], binaries_of(without_digits(texts), offsets), template_of, sharing)


def _alike(text: pl.Series) -> _Alike:
    data, bounds = _padded(text)
    rows = binaries_of(without_digits(data), bounds).to_frame("template").with_row_index("row")
    groups = rows.group_by("template", maintain_order=True).agg("row")
    sharing = groups["row"].list.len()
    template_of = np.empty(text.len(), dtype=np.int64)
    template_of[groups["row"].explode().to_numpy()] = np.repeat(np.arange(groups.height), sharing.to_numpy())
    return _Alike(data, bounds[:-1], groups["template"], template_of, sharing)


@dataclass(frozen=True)
class _Searches:
    """Patterns, and the spans of their first groups in the templates met so far."""

    patterns: Sequence[re.Pattern[str]]
    known: dict[bytes, bytes] = field(default_factory=dict)

    def learn(self, lines: _Alike) -> None:
        """Search the templates that enough lines share."""
        if len(self.known) > _MAX_KNOWN:
            self.known.clear()
        each = zip(lines.templates, lines.sharing, strict=True)
        new = [(template, sharing) for template, sharing in each if template not in self.known]
        for template, sharing in new:
            if len(new) <= _FEW_TEMPLATES or sharing >= _SHARED:
                self._search(template)

    def _search(self, template: bytes) -> None:
        if len(template) > _MAX_TEMPLATE_BYTES or not _PLAIN.fullmatch(text := template.decode()):
            return
        spans = array("i")
        for pattern in self.patterns:
            hit = pattern.search(text)
            spans.extend(hit.span(1) if hit else (-1, -1))
        if not template.isascii():
            spans = array("i", (end if end < 0 else len(text[:end].encode()) for end in spans))
        self.known[template] = spans.tobytes()

    def spans(self, templates: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of each pattern's group in each template, -1 where it has none; whether they are known."""
        nowhere = array("i", [-1, -1] * len(self.patterns)).tobytes()
        known = [self.known.get(template) for template in templates]
        spans = np.frombuffer(b"".join(span or nowhere for span in known), dtype=np.int32)
        return spans.reshape(templates.len(), len(self.patterns), 2), np.array([span is not None for span in known])


@lru_cache(maxsize=128)
def _searches(patterns: tuple[str, ...]) -> _Searches:
    return _Searches([re.compile(pattern) for pattern in patterns])
