"""The first pass over a block of lines: which of them anyone may read, and what tells whose file it is.

Most lines of most logs say nothing. What is left of several blocks is read together (`pipeline.logs.engine.extract`):
every pattern that a dialect tries costs about a millisecond however few lines there are: polars compiles it anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.engine.detect import ENDS, SIGN_LINES, detect, signs_of
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.text.line_templates import Shapes


@dataclass(frozen=True)
class Sifted:
    """What is left of a block.

    Attributes:
        candidates: cleaned lines by dialect, of each source that it may turn out to own.
        proofs: cleaned lines that may be evidence.
        edges: the first and the last lines of each source, as they are.
        signs: how often each signature literal stands in each source; of a settled one, only until it was settled.
        ends: last line of each source.
    """

    candidates: Mapping[str, pl.DataFrame]
    proofs: pl.DataFrame
    edges: pl.DataFrame
    signs: pl.DataFrame
    ends: pl.DataFrame

    @cached_property
    def text_bytes(self) -> int:
        """Size of the lines that are left."""
        frames = (*self.candidates.values(), self.proofs)
        return sum(int(frame["text"].str.len_bytes().sum()) for frame in frames)

    def owned(self) -> Sifted:
        """The same without a hold on the block: until then, a few lines keep all of its bytes in memory."""
        return replace(
            self,
            candidates={name: _owned(frame) for name, frame in self.candidates.items()},
            proofs=_owned(self.proofs),
            edges=_owned(self.edges),
        )


def _owned(frame: pl.DataFrame) -> pl.DataFrame:
    texts = frame.select(pl.col(pl.String)).to_arrow(compat_level=pl.CompatLevel.oldest())
    return frame.with_columns(pl.DataFrame(texts))


def anchors_of(dialects: Sequence[Dialect]) -> tuple[str, ...]:
    """Every literal that makes a line a candidate."""
    own = {literal for dialect in dialects for literal in (*dialect.anchors, *dialect.signature)}
    return tuple(sorted(own | set(patterns.ANCHORS)))


def sift(
    block: pl.DataFrame,
    dialects: Sequence[Dialect],
    *,
    partial: Collection[int] = (),
    known: Mapping[int, str] = MappingProxyType({}),
) -> Sifted:
    """The lines of a block that matter (columns `source`, `line_no`, `text`; see `lines.split`).

    Args:
        partial: the sources that have lines in other blocks, too. All other sources are read by one dialect only.
        known: dialects that earlier blocks have settled (`Extract.settled`); their sources are read by those only.
    """
    reach = _reach(block)
    present = set(reach["source"])
    settled = {source: name for source, name in known.items() if source in present}
    is_open = ~pl.col("source").is_in(list(settled)) & (pl.col("line_no") <= SIGN_LINES)
    first, late = (
        (block.clear(), block) if settled.keys() == present else (block.filter(is_open), block.filter(~is_open))
    )
    rows, signs, proofs = _anyones(first, dialects)
    begun = _begun(reach, partial)
    told = {source: name for source, name in detect(signs, dialects).items() if source in begun}
    owners = settled | told
    there = set(late["source"].unique())
    if unowned := there - owners.keys():
        of_rest = _anyones(_of(late, unowned, there), dialects)
        rows, signs, proofs = (pl.concat(parts) for parts in zip((rows, signs, proofs), of_rest, strict=True))
    guessed = detect(signs, dialects)
    open_ended = (set(partial) & present) - owners.keys()
    late_proofs: list[pl.DataFrame] = []
    parts: dict[str, list[pl.DataFrame]] = {}
    for dialect in dialects:
        if mine := {source for source, name in guessed.items() if name == dialect.name} | open_ended:
            parts.setdefault(dialect.name, []).append(_holding(_of(rows, mine, present), dialect.anchors))
        if theirs := {source for source, name in owners.items() if name == dialect.name} & there:
            near = cleaning.candidates(_of(late, theirs, there), dialect.needed | set(patterns.ANCHORS))
            own = _holding(near, dialect.needed)
            parts.setdefault(dialect.name, []).append(own if dialect.is_anchored else _holding(own, dialect.anchors))
            late_proofs.append(_holding(near, patterns.ANCHORS))
    found = {name: _in_order(frames) for name, frames in parts.items()}
    return Sifted(
        candidates={name: frame for name, frame in found.items() if not frame.is_empty()},
        proofs=pl.concat([proofs, *late_proofs]),
        edges=cleaning.edges(block),
        signs=signs,
        ends=reach.select("source", last_line="last").cast(ENDS),
    )


def _anyones(block: pl.DataFrame, dialects: Sequence[Dialect]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Candidates of any dialect, the signs in them, and those that may be evidence."""
    rows = cleaning.candidates(block, anchors_of(dialects))
    shapes = Shapes.of(rows)
    return rows, signs_of(rows, shapes, dialects), rows.filter(shapes.holding(patterns.ANCHORS))


def _in_order(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The frames together, the lines of each source in a row."""
    return frames[0] if len(frames) == 1 else pl.concat(frames).sort("source", "line_no", maintain_order=True)


def _holding(rows: pl.DataFrame, literals: Collection[str]) -> pl.DataFrame:
    return rows.filter(Shapes.of(rows).holding(literals))


def _begun(reach: pl.DataFrame, partial: Collection[int]) -> set[int]:
    """Sources whose first SIGN_LINES lie in this block: with a sign among those, a file is as good as whole."""
    is_long = (pl.col("last") >= SIGN_LINES) | ~pl.col("source").is_in(list(partial))
    return set(reach.filter((pl.col("first") == 1) & is_long)["source"])


def _of(block: pl.DataFrame, sources: Collection[int], present: Collection[int]) -> pl.DataFrame:
    if len(sources) == len(present):
        return block
    return block.filter(pl.col("source").is_in(list(sources))) if sources else block.clear()


def _reach(block: pl.DataFrame) -> pl.DataFrame:
    """First and last line of each source of a block: `source`, `first`, `last`."""
    stretches = block["source"].rle().struct.unnest()
    lengths = stretches["len"].to_numpy().astype(np.int64)
    stops = np.cumsum(lengths)
    line_no = block["line_no"]
    told = pl.DataFrame({"source": stretches["value"], "first": line_no[stops - lengths], "last": line_no[stops - 1]})
    return told.group_by("source").agg(pl.col("first").min(), pl.col("last").max())
