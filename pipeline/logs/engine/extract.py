"""The map: lines of many files to facts, each file read by the dialect whose signature it holds.

`extract` looks at one block at a time and decides nothing that a later block could change: a file that comes in several
blocks is read by every dialect whose literals it holds, or kept until all of it has been seen (`read_later`), and
`merge` keeps the reading of the one dialect whose signature the whole file holds. So it does not matter where a file
was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import polars as pl

from sweepscope.pipeline.io.spill import spilled, stretches
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.engine.detect import DETECTION_LINES, LAST_LINES, SIGNATURE_HITS, detect
from sweepscope.pipeline.logs.engine.prefilter import FilteredBlock, candidates_of, prefilter
from sweepscope.pipeline.logs.engine.read_lines import facts_of_lines
from sweepscope.pipeline.logs.engine.spans import SPANS, ordered_spans, stamps_of
from sweepscope.pipeline.logs.evidence import arguments, endings, ignored_exceptions
from sweepscope.pipeline.logs.evidence import patterns as evidence
from sweepscope.pipeline.logs.facts import EVENT_FACTS, Facts, in_order
from sweepscope.pipeline.text.timestamps import timestamp


@dataclass(frozen=True)
class Extract:
    """Facts of some blocks.

    Attributes:
        dialects: those that may own a source; their order breaks ties.
        readings: facts by dialect, of each source that the dialect may turn out to own.
        evidence: EVENT_FACTS that any log may hold.
        argument_lines: ARGUMENT_LINES rows, in which any log may hold arguments.
        stamps: SPANS rows of the first and last lines of each block.
        signature_hits: SIGNATURE_HITS rows; of a source with a decided owner, only those until it was decided.
        last_lines: LAST_LINES rows, one per source and block.
    """

    dialects: Sequence[Dialect]
    readings: Mapping[str, Facts]
    evidence: pl.DataFrame
    argument_lines: pl.DataFrame
    stamps: pl.DataFrame
    signature_hits: pl.DataFrame
    last_lines: pl.DataFrame

    @cached_property
    def dialect_of(self) -> dict[int, str]:
        """Dialect by source; a source without a signature is left out."""
        return detect(self.signature_hits, self.dialects)

    @cached_property
    def facts(self) -> Facts:
        """Facts of each source as its own dialect reads it, in file order."""
        finalize = {dialect.name: dialect.finalize for dialect in self.dialects}
        sources_of: dict[str, set[int]] = {}
        for source, owner in self.dialect_of.items():
            sources_of.setdefault(owner, set()).add(source)
        owned = []
        # In the order of their files, so that mostly nothing need be copied to sort it.
        for name, sources in sorted(sources_of.items(), key=lambda of: min(of[1])):
            if name in self.readings:
                facts, change = self.readings[name].map(of_sources(sources)), finalize[name]
                changed = change(facts) if change else facts
                is_same = changed.steps is facts.steps
                owned.append(changed if is_same else replace(changed, steps=spilled(changed.steps)))
        of_dialects = Facts.concat(owned)
        return Facts.concat([of_dialects, Facts.only_events(self._unclaimed(of_dialects.events))]).map(in_order)

    def _unclaimed(self, events: pl.DataFrame) -> pl.DataFrame:
        """The evidence without what Python ignored, and without a script's end by which a dialect already knows it."""
        ends = events.filter(kind="training_end").select("source", "line_no", kind=pl.lit(endings.KIND))
        evidence = ignored_exceptions.without_ignored(self.evidence)
        return evidence.join(ends, on=ends.columns, how="anti", maintain_order="left")

    def without(self, sources: Collection[int]) -> Extract:
        """As if those files had never been read."""
        keep = of_sources(sources, keep=False)
        return Extract(
            dialects=self.dialects,
            readings={name: facts.map(keep) for name, facts in self.readings.items()},
            evidence=keep(self.evidence),
            argument_lines=keep(self.argument_lines),
            stamps=keep(self.stamps),
            signature_hits=keep(self.signature_hits),
            last_lines=keep(self.last_lines),
        )

    def map(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Extract:
        """`change` applied to the facts, the evidence and the lines of arguments."""
        readings = {name: facts.map(change) for name, facts in self.readings.items()}
        lines = change(self.argument_lines)
        return replace(self, readings=readings, evidence=change(self.evidence), argument_lines=lines)

    def map_large(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Extract:
        """`Facts.map_large` of every reading."""
        return replace(self, readings={name: facts.map_large(change) for name, facts in self.readings.items()})

    @property
    def large_bytes(self) -> int:
        """Bytes that steps and peaks take."""
        return sum(facts.large_bytes for facts in self.readings.values())

    def condensed(self) -> Extract:
        """The same without what no further block can need: it stays small however many blocks a file comes in."""
        decided = self.decided
        others = {
            name: of_sources([source for source, owner in decided.items() if owner != name], keep=False)
            for name in self.readings
        }
        return replace(
            self,
            readings={name: facts.map(others[name]) for name, facts in self.readings.items()},
            argument_lines=arguments.first_of_each(self.argument_lines),
            stamps=self._boundary_stamps,
            signature_hits=self.signature_hits.group_by("source", "literal", "is_early").agg(pl.col("hits").sum()),
            last_lines=_last(self.last_lines),
        )

    @cached_property
    def decided(self) -> dict[int, str]:
        """Dialect by source, of those whose DETECTION_LINES have been read and hold a signature: no later block counts.

        It asks for all blocks of a source so far, from its first line on.
        """
        early = self.signature_hits.filter("is_early")
        read = _last(self.last_lines).filter(pl.col("last_line") >= DETECTION_LINES)
        return detect(early.join(read, on="source", how="semi"), self.dialects)

    @cached_property
    def spans(self) -> pl.DataFrame:
        """SPANS rows in file order: of steps, events, and the first and last lines of each file."""
        return ordered_spans([self._boundary_stamps, *stamps_of(self.facts)])

    @property
    def _boundary_stamps(self) -> pl.DataFrame:
        return _outer(self.stamps, _last(self.last_lines))


def merge(extracts: Iterable[Extract], dialects: Sequence[Dialect]) -> Extract:
    """Several blocks as if they had been one; none at all is an empty one."""
    parts = list(extracts)
    return Extract(
        dialects=dialects,
        readings={
            d.name: Facts.concat(part.readings[d.name] for part in parts if d.name in part.readings) for d in dialects
        },
        evidence=pl.concat([pl.DataFrame(schema=EVENT_FACTS), *(part.evidence for part in parts)]),
        argument_lines=pl.concat(
            [pl.DataFrame(schema=arguments.ARGUMENT_LINES), *(part.argument_lines for part in parts)]
        ),
        stamps=pl.concat([pl.DataFrame(schema=SPANS), *(part.stamps for part in parts)]),
        signature_hits=pl.concat([pl.DataFrame(schema=SIGNATURE_HITS), *(part.signature_hits for part in parts)]),
        last_lines=pl.concat([pl.DataFrame(schema=LAST_LINES), *(part.last_lines for part in parts)]),
    )


def decided_by(extracts: Iterable[Extract | FilteredBlock], dialects: Sequence[Dialect]) -> dict[int, str]:
    """`Extract.decided` of several blocks together: the signature that decides may be in any of them."""
    empty = merge([], dialects)
    parts = [empty, *extracts]
    hits = pl.concat(part.signature_hits for part in parts)
    return replace(empty, signature_hits=hits, last_lines=pl.concat(part.last_lines for part in parts)).decided


def extract(
    block: pl.DataFrame,
    dialects: Sequence[Dialect],
    *,
    partial: Collection[int] = (),
    known: Mapping[int, str] = MappingProxyType({}),
) -> Extract:
    """Facts of one block of lines (`source`, `line_no`, `text`); see `prefilter` for the arguments."""
    return read([prefilter(block, dialects, partial=partial, known=known)], dialects)


def read(blocks: Sequence[FilteredBlock], dialects: Sequence[Dialect]) -> Extract:
    """Facts of some filtered blocks, at least one, in the order in which they came; undecided lines by any dialect."""
    undecided = pl.concat(block.undecided for block in blocks)
    readings = {}
    for dialect in dialects:
        parts = [block.candidates[dialect.name] for block in blocks if dialect.name in block.candidates]
        if not undecided.is_empty():
            parts = [pl.concat([*parts, candidates_of(dialect, undecided)]).sort("source", "line_no")]
        if parts:
            readings[dialect.name] = facts_of_lines(dialect, pl.concat(parts))
    last_lines = _last(pl.concat(block.last_lines for block in blocks))
    boundary_lines = _outer(pl.concat(block.boundary_lines for block in blocks), last_lines)
    return Extract(
        dialects=dialects,
        readings=readings,
        evidence=evidence.events(pl.concat(block.evidence_lines for block in blocks)),
        argument_lines=pl.concat(block.argument_lines for block in blocks),
        stamps=cleaning.clean(boundary_lines).select("source", "line_no", ts=_time()).drop_nulls("ts"),
        signature_hits=pl.concat(block.signature_hits for block in blocks),
        last_lines=last_lines,
    )


def read_later(
    undecided: pl.DataFrame, dialects: Sequence[Dialect], owners: Mapping[int, str], open_sources: Collection[int]
) -> Extract:
    """Facts of lines that had been undecided when they came (`FilteredBlock.undecided`).

    Args:
        undecided: the lines, cleaned.
        dialects: those that may own a source.
        owners: dialect by source, now that all of it has been seen; sources without one are read by none.
        open_sources: those whose owner may still change; they are read by any dialect.
    """
    readings = {}
    for dialect in dialects:
        mine = {source for source, name in owners.items() if name == dialect.name}
        wanted = mine.union(open_sources)
        rows = of_sources(wanted)(undecided) if wanted else undecided.clear()
        if not rows.is_empty():
            readings[dialect.name] = facts_of_lines(dialect, candidates_of(dialect, rows))
    return replace(merge([], dialects), readings=readings)


def read_as(dialect: Dialect, block: pl.DataFrame) -> Facts:
    """Facts of one block of lines, all of which are read by one dialect, whatever signature they hold."""
    return facts_of_lines(dialect, cleaning.candidates(block, dialect.required_literals))


def _last(last_lines: pl.DataFrame) -> pl.DataFrame:
    return last_lines.group_by("source").agg(pl.col("last_line").max(), pl.col("step_like", "loss_like").sum())


def _outer(rows: pl.DataFrame, last_lines: pl.DataFrame) -> pl.DataFrame:
    """Rows of the first and the last BOUNDARY_LINES of each source, as far as it has been read (`last_lines`)."""
    line_no, last = pl.col("line_no"), pl.col("last_line")
    is_inside = (line_no > cleaning.BOUNDARY_LINES) & (line_no <= last - cleaning.BOUNDARY_LINES)
    read = last_lines.select("source", "last_line")
    return rows.join(read, on="source", maintain_order="left").filter(~is_inside).drop("last_line")


def _time() -> pl.Expr:
    """The time in a line or its prefix."""
    return timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))


def of_sources(sources: Collection[int], *, keep: bool = True) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A function of the rows of some sources, or of all others; without a copy where those are all or none."""
    wanted = set(sources)

    def chosen(frame: pl.DataFrame) -> pl.DataFrame:
        present = set(stretches(frame["source"])["value"])
        kept = present & wanted if keep else present - wanted
        return frame if kept == present else frame.filter(pl.col("source").is_in(list(kept)))

    return chosen
