"""The map: lines of many files to facts, each file read by the dialect whose signature it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.parse import evidence, lines
from pipeline.parse.protocol import EVENT_FACTS, GAUGE_FACTS, SETTING_FACTS, STEP_FACTS, Dialect, Facts, conform
from pipeline.parse.timestamps import timestamp

SPANS = pl.Schema({"source": pl.Int64, "line_no": pl.Int64, "ts": pl.Datetime("us")})
"""Timestamps of candidate lines, from which a run's begin and end are read."""


@dataclass(frozen=True)
class Extract:
    """Facts of a block, the timestamps seen, and the dialect of each source recognised so far."""

    facts: Facts
    spans: pl.DataFrame
    dialect_of: Mapping[int, str]


def anchors_of(dialects: Sequence[Dialect]) -> tuple[str, ...]:
    """Every literal that makes a line a candidate."""
    own = {literal for dialect in dialects for literal in (*dialect.anchors, *dialect.signature)}
    return tuple(sorted(own | set(evidence.ANCHORS)))


def detect(rows: pl.DataFrame, dialects: Sequence[Dialect]) -> dict[int, str]:
    """Dialect per source: most distinct signature literals, then most lines that carry one.

    A source whose lines carry none is left out.
    """
    text = pl.col("text")
    hits = [
        rows.group_by("source").agg(
            distinct=pl.sum_horizontal(text.str.contains(literal, literal=True).any() for literal in d.signature),
            total=text.str.contains_any(list(d.signature)).sum(),
        ).with_columns(dialect=pl.lit(d.name), place=pl.lit(place))
        for place, d in enumerate(dialects)
    ]  # fmt: skip
    best = (
        pl.concat(hits)
        .filter(pl.col("distinct") > 0)
        .sort(["distinct", "total", "place"], descending=[True, True, False])
        .unique("source", keep="first", maintain_order=True)
    )
    return dict(zip(best["source"].to_list(), best["dialect"].to_list(), strict=True))


def extract(
    block: pl.DataFrame, dialects: Sequence[Dialect], *, dialect_of: Mapping[int, str] | None = None
) -> Extract:
    """Facts of one block of lines (columns `source`, `line_no`, `text`; see `lines.split`).

    `dialect_of` holds what earlier blocks of the same files showed and wins over this block's signature.
    """
    rows = lines.candidates(block, anchors_of(dialects))
    known = {**detect(rows.filter(~pl.col("is_edge")), dialects), **(dialect_of or {})}
    owner = pl.col("source").replace_strict(known, default=None, return_dtype=pl.String)
    rows = rows.with_columns(dialect=owner)
    parts = [_events_only(rows)]
    for dialect in dialects:
        mine = rows.filter((pl.col("dialect") == dialect.name) & pl.col("text").str.contains_any(list(dialect.anchors)))
        if not mine.is_empty():
            parts.append(_run(dialect, mine))
    spans = rows.select("source", "line_no", ts=timestamp(pl.coalesce(pl.col("prefix"), pl.lit("")) + pl.col("text")))
    return Extract(Facts.concat(parts), spans.drop_nulls("ts"), known)


def _events_only(rows: pl.DataFrame) -> Facts:
    empty = Facts.empty()
    return Facts(empty.steps, empty.settings, empty.gauges, evidence.events(rows))


def _run(dialect: Dialect, rows: pl.DataFrame) -> Facts:
    steps = conform(dialect.steps(rows), STEP_FACTS)
    # The raw line is kept only where it is needed: for a reject.
    steps = steps.with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return Facts(
        steps=steps,
        settings=conform(dialect.settings(rows), SETTING_FACTS),
        gauges=conform(dialect.gauges(rows), GAUGE_FACTS),
        events=conform(dialect.events(rows), EVENT_FACTS),
    )
