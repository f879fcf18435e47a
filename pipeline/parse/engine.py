"""The map: lines of many files to facts, each file read by the dialect whose signature it carries.

`extract` looks at one block at a time and decides nothing that a later block could change: a file that comes in several
blocks is read by every dialect whose anchors it holds, and `merge` keeps the reading of the one dialect whose signature
the whole file carries. So it does not matter where a file was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from pipeline.parse import evidence, lines
from pipeline.parse.protocol import EVENT_FACTS, GAUGE_FACTS, SETTING_FACTS, STEP_FACTS, Dialect, Facts, conform
from pipeline.parse.timestamps import timestamp

SPANS = pl.Schema({"source": pl.Int64(), "line_no": pl.Int64(), "ts": pl.Datetime("us")})
"""Timestamps of candidate lines, from which a run's begin and end are read."""

_STAMPS = pl.Schema([*SPANS.items(), ("is_edge", pl.Boolean())])
_SIGNS = pl.Schema({"source": pl.Int64, "literal": pl.String, "hits": pl.Int64})
_ENDS = pl.Schema({"source": pl.Int64, "last_line": pl.Int64})


@dataclass(frozen=True)
class Extract:
    """What some blocks say.

    Attributes:
        dialects: the dialects asked; their order breaks ties.
        readings: facts by dialect, of each source that the dialect may turn out to own.
        evidence: EVENT_FACTS that any log may hold.
        stamps: timestamps of candidate lines and of the first and last lines of each block.
        signs: how often each signature literal stands in each source.
        ends: last line of each source, per block.
    """

    dialects: Sequence[Dialect]
    readings: Mapping[str, Facts]
    evidence: pl.DataFrame
    stamps: pl.DataFrame
    signs: pl.DataFrame
    ends: pl.DataFrame

    @cached_property
    def dialect_of(self) -> dict[int, str]:
        """Dialect per source; a source that carries no signature is left out."""
        return detect(self.signs, self.dialects)

    @cached_property
    def facts(self) -> Facts:
        """Facts of each source as its own dialect reads it, in file order."""
        settle = {dialect.name: dialect.settle for dialect in self.dialects}
        owned = []
        for name, facts in self.readings.items():
            mine = facts.map(_of_sources([source for source, owner in self.dialect_of.items() if owner == name]))
            change = settle[name]
            owned.append(change(mine) if change else mine)
        both = Facts.concat([*owned, Facts.only_events(self.evidence)])
        return both.map(lambda frame: frame.sort("source", "line_no", maintain_order=True))

    def without(self, sources: Collection[int]) -> Extract:
        """As if those files had never been read."""
        keep = _of_sources(sources, keep=False)
        return Extract(
            dialects=self.dialects,
            readings={name: facts.map(keep) for name, facts in self.readings.items()},
            evidence=keep(self.evidence),
            stamps=keep(self.stamps),
            signs=keep(self.signs),
            ends=keep(self.ends),
        )

    @cached_property
    def spans(self) -> pl.DataFrame:
        """SPANS rows in file order: candidate lines, and the first and last lines of each file."""
        line_no, last = pl.col("line_no"), pl.col("last_line")
        is_inside = (line_no > lines.EDGE_LINES) & (line_no <= last - lines.EDGE_LINES)
        ends = self.ends.group_by("source").agg(pl.col("last_line").max())
        kept = self.stamps.join(ends, on="source").filter(~(pl.col("is_edge") & is_inside))
        return kept.select(SPANS.names()).sort("source", "line_no", maintain_order=True)


def merge(extracts: Iterable[Extract], dialects: Sequence[Dialect]) -> Extract:
    """Several blocks as if they had been one; none at all is an empty one."""
    parts = list(extracts)
    return Extract(
        dialects=dialects,
        readings={
            d.name: Facts.concat(part.readings[d.name] for part in parts if d.name in part.readings) for d in dialects
        },
        evidence=pl.concat([pl.DataFrame(schema=EVENT_FACTS), *(part.evidence for part in parts)]),
        stamps=pl.concat([pl.DataFrame(schema=_STAMPS), *(part.stamps for part in parts)]),
        signs=pl.concat([pl.DataFrame(schema=_SIGNS), *(part.signs for part in parts)]),
        ends=pl.concat([pl.DataFrame(schema=_ENDS), *(part.ends for part in parts)]),
    )


def anchors_of(dialects: Sequence[Dialect]) -> tuple[str, ...]:
    """Every literal that makes a line a candidate."""
    own = {literal for dialect in dialects for literal in (*dialect.anchors, *dialect.signature)}
    return tuple(sorted(own | set(evidence.ANCHORS)))


def signs_of(rows: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """How often each signature literal stands in each source: `source`, `literal`, `hits`."""
    literals = sorted({literal for dialect in dialects for literal in dialect.signature})
    found = rows.select("source", literal=pl.col("text").str.extract_many(literals, overlapping=True))
    counted = found.explode("literal").drop_nulls().group_by("source", "literal").agg(hits=pl.len())
    return counted.cast(_SIGNS)


def detect(signs: pl.DataFrame, dialects: Sequence[Dialect]) -> dict[int, str]:
    """Dialect per source: most distinct signature literals, then most hits, then the order of `dialects`."""
    parts = [
        signs.filter(pl.col("literal").is_in(list(d.signature)))
        .group_by("source")
        .agg(distinct=pl.col("literal").n_unique(), total=pl.col("hits").sum())
        .with_columns(dialect=pl.lit(d.name), place=pl.lit(place))
        for place, d in enumerate(dialects)
    ]
    best = (
        pl.concat(parts)
        .sort("source", "distinct", "total", "place", descending=[False, True, True, False])
        .unique("source", keep="first", maintain_order=True)
    )
    return dict(zip(best["source"].to_list(), best["dialect"].to_list(), strict=True))


def extract(block: pl.DataFrame, dialects: Sequence[Dialect], *, partial: Collection[int] = ()) -> Extract:
    """Facts of one block of lines (columns `source`, `line_no`, `text`; see `lines.split`).

    `partial` names the sources that have lines in other blocks, too. All other sources are read by one dialect only.
    """
    rows = lines.candidates(block, anchors_of(dialects))
    signs = signs_of(rows.filter(~pl.col("is_edge")), dialects)
    owner = pl.col("source").replace_strict(detect(signs, dialects), default=None, return_dtype=pl.String)
    rows = rows.with_columns(dialect=pl.when(pl.col("source").is_in(list(partial))).then(pl.lit(_ANY)).otherwise(owner))
    readings = {}
    for dialect in dialects:
        is_mine = pl.col("dialect").is_in([dialect.name, _ANY])
        mine = rows.filter(is_mine & pl.col("text").str.contains_any(list(dialect.anchors)))
        if not mine.is_empty():
            readings[dialect.name] = _read(dialect, mine.drop("dialect"))
    stamps = rows.select(
        "source", "line_no", ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)), is_edge="is_edge"
    )
    return Extract(
        dialects=dialects,
        readings=readings,
        evidence=evidence.events(rows),
        stamps=stamps.drop_nulls("ts"),
        signs=signs,
        ends=block.group_by("source").agg(last_line=pl.col("line_no").max()).cast(_ENDS),
    )


_ANY = "*"
"""Stands for the dialect of a source that cannot be recognised before its last block."""


def _of_sources(sources: Collection[int], *, keep: bool = True) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: frame.filter(pl.col("source").is_in(list(sources)) == keep)


def _read(dialect: Dialect, rows: pl.DataFrame) -> Facts:
    steps = conform(dialect.steps(rows), STEP_FACTS)
    # The raw line is kept only where it is needed: for a reject.
    steps = steps.with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return Facts(
        steps=steps,
        settings=conform(dialect.settings(rows), SETTING_FACTS),
        gauges=conform(dialect.gauges(rows), GAUGE_FACTS),
        events=conform(dialect.events(rows), EVENT_FACTS),
    )
