"""The map: lines of many files to facts, each file read by the dialect whose signature it carries.

`extract` looks at one block at a time and decides nothing that a later block could change: a file that comes in several
blocks is read by every dialect whose anchors it holds, and `merge` keeps the reading of the one dialect whose signature
the whole file carries. So it does not matter where a file was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import polars as pl

from sweepscope.pipeline.logs.dialect import (
    EVENT_FACTS,
    GAUGE_FACTS,
    SETTING_FACTS,
    STEP_FACTS,
    Dialect,
    Facts,
    LineFacts,
    conform,
    in_order,
)
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.engine.detect import ENDS, SIGN_LINES, SIGNS, detect
from sweepscope.pipeline.logs.engine.prefilter import Sifted, sift
from sweepscope.pipeline.logs.evidence import patterns as evidence
from sweepscope.pipeline.text.line_templates import Shapes
from sweepscope.pipeline.text.timestamps import timestamp

SPANS = pl.Schema({"source": pl.Int64(), "line_no": pl.Int64(), "ts": pl.Datetime("us")})
"""Timestamps from which a run's begin and end are read."""

READ_LINES = 32 << 10
"""Lines that a dialect reads at once: each of its patterns makes a column of them."""


@dataclass(frozen=True)
class Extract:
    """What some blocks say.

    Attributes:
        dialects: the dialects asked; their order breaks ties.
        readings: facts by dialect, of each source that the dialect may turn out to own.
        evidence: EVENT_FACTS that any log may hold.
        stamps: timestamps of the first and last lines of each block.
        signs: how often each signature literal stands in each source; of a settled one, only until it was settled.
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
        sources_of: dict[str, set[int]] = {}
        for source, owner in self.dialect_of.items():
            sources_of.setdefault(owner, set()).add(source)
        owned = []
        # In the order of their files, so that mostly nothing need be copied to sort it.
        for name, sources in sorted(sources_of.items(), key=lambda of: min(of[1])):
            if name in self.readings:
                mine, change = self.readings[name].map(_of_sources(sources)), settle[name]
                owned.append(change(mine) if change else mine)
        return Facts.concat([*owned, Facts.only_events(self.evidence)]).map(in_order)

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

    def condensed(self) -> Extract:
        """The same without what no further block can call for: it stays small however many blocks a file comes in."""
        settled = self.settled
        others = {
            name: _of_sources([source for source, owner in settled.items() if owner != name], keep=False)
            for name in self.readings
        }
        return replace(
            self,
            readings={name: facts.map(others[name]) for name, facts in self.readings.items()},
            stamps=self._edges,
            signs=self.signs.group_by("source", "literal", "is_early").agg(pl.col("hits").sum()),
            ends=_last(self.ends),
        )

    @cached_property
    def settled(self) -> dict[int, str]:
        """Dialects that no later block can change: of sources whose first SIGN_LINES have been read and hold a sign.

        The sources have to be there from their first line on: this asks for all blocks so far, not for one of them.
        """
        early = self.signs.filter("is_early")
        read = _last(self.ends).filter(pl.col("last_line") >= SIGN_LINES)
        return detect(early.join(read, on="source", how="semi"), self.dialects)

    @cached_property
    def spans(self) -> pl.DataFrame:
        """SPANS rows in file order: of steps, events, and the first and last lines of each file."""
        # By their names: a query over some columns would put together the pieces of all of them.
        told = [frame[SPANS.names()].drop_nulls("ts") for frame in (self.facts.steps, self.facts.events)]
        rows = pl.concat([self._edges, *told]).sort(SPANS.names())
        # Side by side now: to look for the same rows among all would take ten times their memory.
        is_again = pl.all_horizontal(pl.all() == pl.all().shift(1)).fill_null(value=False)
        return rows.filter(~is_again)

    @property
    def _edges(self) -> pl.DataFrame:
        return _outer(self.stamps, _last(self.ends))


def merge(extracts: Iterable[Extract], dialects: Sequence[Dialect]) -> Extract:
    """Several blocks as if they had been one; none at all is an empty one."""
    parts = list(extracts)
    return Extract(
        dialects=dialects,
        readings={
            d.name: Facts.concat(part.readings[d.name] for part in parts if d.name in part.readings) for d in dialects
        },
        evidence=pl.concat([pl.DataFrame(schema=EVENT_FACTS), *(part.evidence for part in parts)]),
        stamps=pl.concat([pl.DataFrame(schema=SPANS), *(part.stamps for part in parts)]),
        signs=pl.concat([pl.DataFrame(schema=SIGNS), *(part.signs for part in parts)]),
        ends=pl.concat([pl.DataFrame(schema=ENDS), *(part.ends for part in parts)]),
    )


def settled_by(extracts: Iterable[Extract | Sifted], dialects: Sequence[Dialect]) -> dict[int, str]:
    """`Extract.settled` of several blocks together: a sign that decides may stand in any of them."""
    said = merge([], dialects)
    parts = [said, *extracts]
    signs, ends = pl.concat(part.signs for part in parts), pl.concat(part.ends for part in parts)
    return replace(said, signs=signs, ends=ends).settled


def extract(
    block: pl.DataFrame,
    dialects: Sequence[Dialect],
    *,
    partial: Collection[int] = (),
    known: Mapping[int, str] = MappingProxyType({}),
) -> Extract:
    """Facts of one block of lines; see `sift` for the arguments."""
    return read([sift(block, dialects, partial=partial, known=known)], dialects)


def read(blocks: Sequence[Sifted], dialects: Sequence[Dialect]) -> Extract:
    """Facts of what was left of some blocks, in the order in which they came. At least one."""
    readings = {}
    for dialect in dialects:
        parts = [block.candidates[dialect.name] for block in blocks if dialect.name in block.candidates]
        if parts:
            readings[dialect.name] = _read(dialect, pl.concat(parts))
    ends = _last(pl.concat(block.ends for block in blocks))
    edges = _outer(pl.concat(block.edges for block in blocks), ends)
    return Extract(
        dialects=dialects,
        readings=readings,
        evidence=evidence.events(pl.concat(block.proofs for block in blocks)),
        stamps=cleaning.clean(edges).select("source", "line_no", ts=_time()).drop_nulls("ts"),
        signs=pl.concat(block.signs for block in blocks),
        ends=ends,
    )


def _last(ends: pl.DataFrame) -> pl.DataFrame:
    return ends.group_by("source").agg(pl.col("last_line").max())


def _outer(rows: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Rows of the first and the last EDGE_LINES of each source, as far as it has been read (`ends`)."""
    line_no, last = pl.col("line_no"), pl.col("last_line")
    is_inside = (line_no > cleaning.EDGE_LINES) & (line_no <= last - cleaning.EDGE_LINES)
    return rows.join(ends, on="source", maintain_order="left").filter(~is_inside).drop("last_line")


def _time() -> pl.Expr:
    """The time that stands in a line or its prefix."""
    return timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))


def _of_sources(sources: Collection[int], *, keep: bool = True) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """The rows of some sources, or of all others; without a copy where those are all or none."""
    wanted = set(sources)

    def chosen(frame: pl.DataFrame) -> pl.DataFrame:
        present = set(frame["source"].unique())
        kept = present & wanted if keep else present - wanted
        return frame if kept == present else frame.filter(pl.col("source").is_in(list(kept)))

    return chosen


def _read(dialect: Dialect, rows: pl.DataFrame) -> Facts:
    if rows.is_empty():
        return Facts.empty()
    schemas = {"steps": STEP_FACTS, "settings": SETTING_FACTS, "gauges": GAUGE_FACTS, "events": EVENT_FACTS}
    wanted: dict[str, list[pl.DataFrame]] = {function: [] for function in schemas}
    for part in rows.iter_slices(READ_LINES):
        shapes = Shapes.of(part)
        for function, chosen in wanted.items():
            is_narrowed = function in dialect.narrowed
            chosen.append(part.filter(shapes.holding(dialect.narrowed[function])) if is_narrowed else part)

    def said(function: str) -> pl.DataFrame:
        # Of what was chosen as much at once as may be: few lines tell a setting, and each pass has a price.
        slices = pl.concat(wanted.pop(function)).iter_slices(READ_LINES)
        found = [_facts_of(dialect, function, lines, schemas[function]) for lines in slices]
        return pl.concat(found) if found else pl.DataFrame(schema=schemas[function])

    return Facts(**{function: said(function) for function in schemas})


def _facts_of(dialect: Dialect, function: str, rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    read: LineFacts = getattr(dialect, function)
    found = conform(read(rows), schema)
    if function == "steps":  # the raw line is kept only where it is needed: for a reject
        found = found.with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return in_order(found)  # a few at a time: to sort all of a file in the end would hold them twice
