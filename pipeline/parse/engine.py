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

from pipeline.parse import evidence, lines
from pipeline.parse.protocol import EVENT_FACTS, GAUGE_FACTS, SETTING_FACTS, STEP_FACTS, Dialect, Facts, conform
from pipeline.parse.timestamps import timestamp

SPANS = pl.Schema({"source": pl.Int64(), "line_no": pl.Int64(), "ts": pl.Datetime("us")})
"""Timestamps from which a run's begin and end are read."""

_SIGNS = pl.Schema({"source": pl.Int64, "literal": pl.String, "is_early": pl.Boolean, "hits": pl.Int64})
SIGN_LINES = 2_000
"""Lines within which a framework has said who it is; only a file without any sign in them is searched further."""

_ENDS = pl.Schema({"source": pl.Int64, "last_line": pl.Int64})


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
            ends=self.ends.group_by("source").agg(pl.col("last_line").max()),
        )

    @cached_property
    def settled(self) -> dict[int, str]:
        """Dialects that no later block can change: of sources whose first SIGN_LINES have been read and hold a sign.

        The sources have to be there from their first line on: this asks for all blocks so far, not for one of them.
        """
        early = self.signs.filter("is_early")
        read = self.ends.group_by("source").agg(pl.col("last_line").max()).filter(pl.col("last_line") >= SIGN_LINES)
        return detect(early.join(read, on="source", how="semi"), self.dialects)

    @cached_property
    def spans(self) -> pl.DataFrame:
        """SPANS rows in file order: of steps, events, and the first and last lines of each file."""
        told = [frame.select(SPANS.names()).drop_nulls("ts") for frame in (self.facts.steps, self.facts.events)]
        return pl.concat([self._edges, *told]).unique().sort("source", "line_no", maintain_order=True)

    @property
    def _edges(self) -> pl.DataFrame:
        line_no, last = pl.col("line_no"), pl.col("last_line")
        is_inside = (line_no > lines.EDGE_LINES) & (line_no <= last - lines.EDGE_LINES)
        ends = self.ends.group_by("source").agg(pl.col("last_line").max())
        return self.stamps.join(ends, on="source").filter(~is_inside).select(SPANS.names())


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
        signs=pl.concat([pl.DataFrame(schema=_SIGNS), *(part.signs for part in parts)]),
        ends=pl.concat([pl.DataFrame(schema=_ENDS), *(part.ends for part in parts)]),
    )


def settled_by(extracts: Sequence[Extract], dialects: Sequence[Dialect]) -> dict[int, str]:
    """`Extract.settled` of several blocks together: a sign that decides may stand in any of them."""
    said = merge([], dialects)
    signs, ends = ([getattr(part, name) for part in (said, *extracts)] for name in ("signs", "ends"))
    return replace(said, signs=pl.concat(signs), ends=pl.concat(ends)).settled


def anchors_of(dialects: Sequence[Dialect]) -> tuple[str, ...]:
    """Every literal that makes a line a candidate."""
    own = {literal for dialect in dialects for literal in (*dialect.anchors, *dialect.signature)}
    return tuple(sorted(own | set(evidence.ANCHORS)))


def signs_of(rows: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """How often each signature literal stands in each source, and whether early in it: SIGNS rows."""
    literals = sorted({literal for dialect in dialects for literal in dialect.signature})
    found = rows.filter(lines.holding(literals)).select(
        "source",
        is_early=pl.col("line_no") <= SIGN_LINES,
        literal=pl.col("text").str.extract_many(literals, overlapping=True),
    )
    return (
        found.explode("literal").drop_nulls().group_by("source", "literal", "is_early").agg(hits=pl.len()).cast(_SIGNS)
    )


def detect(signs: pl.DataFrame, dialects: Sequence[Dialect]) -> dict[int, str]:
    """Dialect per source: a declared one, then most distinct signature literals, most hits, the order of `dialects`.

    The first SIGN_LINES decide where they hold any signature, so that a long file need not be searched for more. Who
    declares a dialect knows its logs: a script of one's own may well print lines like those of nanoGPT.
    """
    counted = signs.filter(pl.col("is_early") == pl.col("is_early").any().over("source"))
    claims = pl.DataFrame(
        [(d.name, d.is_declared, place, sign) for place, d in enumerate(dialects) for sign in set(d.signature)],
        schema={"dialect": pl.String, "is_declared": pl.Boolean, "place": pl.Int64, "literal": pl.String},
        orient="row",
    )
    claimed = counted.join(claims, on="literal").group_by("source", "dialect", "is_declared", "place")
    best = (
        claimed.agg(distinct=pl.col("literal").n_unique(), total=pl.col("hits").sum())
        .sort("source", "is_declared", "distinct", "total", "place", descending=[False, True, True, True, False])
        .unique("source", keep="first", maintain_order=True)
    )
    return dict(zip(best["source"].to_list(), best["dialect"].to_list(), strict=True))


def extract(
    block: pl.DataFrame,
    dialects: Sequence[Dialect],
    *,
    partial: Collection[int] = (),
    known: Mapping[int, str] = MappingProxyType({}),
) -> Extract:
    """Facts of one block of lines (columns `source`, `line_no`, `text`; see `lines.split`).

    Args:
        partial: the sources that have lines in other blocks, too. All other sources are read by one dialect only.
        known: dialects that earlier blocks have settled (`Extract.settled`); their sources are read by those only.
    """
    source = pl.col("source")
    groups = {dialect.name: [s for s, name in known.items() if name == dialect.name] for dialect in dialects}
    unsettled = block.filter(~source.is_in(list(known))) if known else block
    rows = lines.candidates(unsettled, anchors_of(dialects))
    signs = signs_of(rows, dialects)
    owners = detect(signs, dialects)
    # A file whose first SIGN_LINES lie in this block, with a sign among them, is as good as whole.
    reach = unsettled.group_by("source").agg(first=pl.col("line_no").min(), last=pl.col("line_no").max())
    begun = reach.filter((pl.col("first") == 1) & (pl.col("last") >= SIGN_LINES))["source"]
    recognised = set(begun) & set(signs.filter("is_early")["source"])
    open_ended = set(partial) - set(known) - recognised
    parts: dict[str, list[pl.DataFrame]] = {dialect.name: [] for dialect in dialects}
    proofs = [rows.filter(lines.holding(evidence.ANCHORS))]
    for dialect in dialects:
        mine = [s for s, name in owners.items() if name == dialect.name and s not in open_ended]
        if mine or open_ended:
            parts[dialect.name].append(rows.filter(source.is_in([*mine, *open_ended])))
        if groups[dialect.name]:
            settled = block.filter(source.is_in(groups[dialect.name]))
            own = lines.candidates(settled, {*dialect.anchors, *evidence.ANCHORS})
            parts[dialect.name].append(own)
            proofs.append(own.filter(lines.holding(evidence.ANCHORS)))
    readings = {}
    for dialect in dialects:
        mine_rows = [part.filter(lines.holding(dialect.anchors)) for part in parts[dialect.name]]
        filled = [part for part in mine_rows if not part.is_empty()]
        if filled:
            readings[dialect.name] = _read(dialect, pl.concat(filled))
    found = evidence.events(pl.concat(proofs))
    edges = lines.edges(block)
    return Extract(
        dialects=dialects,
        readings=readings,
        evidence=found,
        stamps=edges.select("source", "line_no", ts=_time()).drop_nulls("ts"),
        signs=signs,
        ends=block.group_by("source").agg(last_line=pl.col("line_no").max()).cast(_ENDS),
    )


def _time() -> pl.Expr:
    """The time that stands in a line or its prefix."""
    return timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))


def _of_sources(sources: Collection[int], *, keep: bool = True) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: frame.filter(pl.col("source").is_in(list(sources)) == keep)


def _read(dialect: Dialect, rows: pl.DataFrame) -> Facts:
    def lines_for(function: str) -> pl.DataFrame:
        return rows.filter(lines.holding(dialect.narrowed[function])) if function in dialect.narrowed else rows

    steps = conform(dialect.steps(lines_for("steps")), STEP_FACTS)
    # The raw line is kept only where it is needed: for a reject.
    steps = steps.with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return Facts(
        steps=steps,
        settings=conform(dialect.settings(lines_for("settings")), SETTING_FACTS),
        gauges=conform(dialect.gauges(lines_for("gauges")), GAUGE_FACTS),
        events=conform(dialect.events(lines_for("events")), EVENT_FACTS),
    )
