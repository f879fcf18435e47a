"""The first pass over a block of lines: those that any dialect may read, and what decides which dialect owns a file.

Most lines of most logs matter to no dialect. What is left of several blocks is read together
(`pipeline.logs.engine.extract`): each pattern of a dialect costs about a millisecond however few lines there are,
because polars compiles it anew.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.engine.detect import DETECTION_LINES, LAST_LINES, count_signatures, detect
from sweepscope.pipeline.logs.evidence import arguments, patterns
from sweepscope.pipeline.logs.synonyms import LOSS_VALUES, STEP_VALUES
from sweepscope.pipeline.text.arrow_buffers import owned
from sweepscope.pipeline.text.line_templates import LineTemplates, Question

_REDRAW = r"\r|\^M"
_MOST_REDRAWS = 1 << 14
_MOST_FORMS = 1 << 15
"""Answers about line templates are small numbers; that two forms share one is rare and adds up their lines."""
_LOSS_SCALE = r"(?i)loss.?scal"
_NUMBER = r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?|\s+"


@dataclass(frozen=True)
class FilteredBlock:
    """What is left of a block.

    Attributes:
        candidates: by dialect, cleaned lines of each source that it owns, as far as this block tells.
        undecided: cleaned lines that any dialect may read, of sources that go on in other blocks and have no owner yet.
        evidence_lines: cleaned lines that may be evidence.
        argument_lines: ARGUMENT_LINES rows, of any source.
        boundary_lines: the first and last lines of each source, as they are.
        signature_hits: SIGNATURE_HITS rows; of a source with a decided owner, only those until it was decided.
        last_lines: LAST_LINES rows.
    """

    candidates: Mapping[str, pl.DataFrame]
    undecided: pl.DataFrame
    evidence_lines: pl.DataFrame
    argument_lines: pl.DataFrame
    boundary_lines: pl.DataFrame
    signature_hits: pl.DataFrame
    last_lines: pl.DataFrame

    @cached_property
    def text_bytes(self) -> int:
        """Size of the lines that are left."""
        return sum(map(text_bytes, (*self.candidates.values(), self.undecided, self.evidence_lines)))

    def owned(self) -> FilteredBlock:
        """A copy that shares no memory with the block: otherwise a few lines keep all of its bytes alive."""
        return replace(
            self,
            candidates={name: owned(frame) for name, frame in self.candidates.items()},
            undecided=owned(self.undecided),
            evidence_lines=owned(self.evidence_lines),
            argument_lines=owned(self.argument_lines),
            boundary_lines=owned(self.boundary_lines),
        )


def text_bytes(rows: pl.DataFrame) -> int:
    """Size of the lines (`text`)."""
    return int(rows["text"].str.len_bytes().sum())


def all_literals(dialects: Sequence[Dialect]) -> tuple[str, ...]:
    """Every literal that makes a line a candidate."""
    of_dialects = {literal for d in dialects for literal in (*d.required_literals, *d.signature_literals)}
    return tuple(sorted(of_dialects | set(patterns.LITERALS)))


def prefilter(
    block: pl.DataFrame,
    dialects: Sequence[Dialect],
    *,
    partial: Collection[int] = (),
    known: Mapping[int, str] = MappingProxyType({}),
    unwanted: Collection[int] = (),
) -> FilteredBlock:
    """The lines of a block that matter.

    Args:
        block: `source`, `line_no`, `text`; see `lines.split`.
        dialects: all that may own a source.
        partial: the sources that have lines in other blocks, too. All other sources are read by one dialect only.
        known: dialects that earlier blocks have decided (`Extract.decided`); their sources are read by those only.
        unwanted: sources of which no undecided lines are kept: they are read once more if they get an owner.
    """
    spans = _line_spans(block)
    present = set(spans["source"])
    decided = {source: name for source, name in known.items() if source in present}
    is_open = ~pl.col("source").is_in(list(decided)) & (pl.col("line_no") <= DETECTION_LINES)
    early, late = (
        (block.clear(), block) if decided.keys() == present else (block.filter(is_open), block.filter(~is_open))
    )
    candidates = [_candidates_of_any(early, dialects)]
    begun = _begun(spans, partial)
    owners = decided | {source: name for source, name in detect(candidates[0][1], dialects).items() if source in begun}
    of_late = set(late["source"].unique())
    if unowned := of_late - owners.keys():
        candidates.append(_candidates_of_any(_of(late, unowned, of_late), dialects))
    rows, signature_hits, evidence_lines = (pl.concat(parts) for parts in zip(*candidates, strict=True))
    likely_owners = detect(signature_hits, dialects)
    undecided = (set(partial) & present) - owners.keys()
    late_evidence: list[pl.DataFrame] = []
    parts: dict[str, list[pl.DataFrame]] = {}
    for dialect in dialects:
        if mine := {source for source, name in likely_owners.items() if name == dialect.name} - undecided:
            parts.setdefault(dialect.name, []).append(candidates_of(dialect, _of(rows, mine, present)))
        if mine := {source for source, name in owners.items() if name == dialect.name} & of_late:
            near = cleaning.candidates(_of(late, mine, of_late), dialect.required_literals | set(patterns.LITERALS))
            parts.setdefault(dialect.name, []).append(_holding(near, dialect.required_literals))
            late_evidence.append(_holding(near, patterns.LITERALS))
    of_dialects = {name: _in_order(frames) for name, frames in parts.items()}
    return FilteredBlock(
        candidates={name: frame for name, frame in of_dialects.items() if not frame.is_empty()},
        undecided=_of(rows, undecided.difference(unwanted), present),
        evidence_lines=pl.concat([evidence_lines, *late_evidence]),
        argument_lines=cleaning.clean(arguments.lines_of(block)).select(arguments.ARGUMENT_LINES.names()),
        boundary_lines=cleaning.boundary_lines(block),
        signature_hits=signature_hits,
        last_lines=spans.join(_step_like(block), on="source", how="left")
        .select("source", pl.col("step_like", "loss_like").fill_null(0), last_line="last")
        .select(LAST_LINES.names())
        .cast(LAST_LINES),
    )


def candidates_of(dialect: Dialect, rows: pl.DataFrame) -> pl.DataFrame:
    """Those of some cleaned lines that a dialect may read."""
    return _holding(rows, dialect.required_literals)


def _candidates_of_any(
    block: pl.DataFrame, dialects: Sequence[Dialect]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Candidate lines of any dialect, the SIGNATURE_HITS in them, and those of them that may be evidence."""
    rows = cleaning.candidates(block, all_literals(dialects))
    templates = LineTemplates.of(rows)
    return rows, count_signatures(rows, templates, dialects), rows.filter(templates.holding(patterns.LITERALS))


def _in_order(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The frames together, the lines of each source in a row."""
    return frames[0] if len(frames) == 1 else pl.concat(frames).sort("source", "line_no", maintain_order=True)


def _holding(rows: pl.DataFrame, literals: Collection[str]) -> pl.DataFrame:
    return rows.filter(LineTemplates.of(rows).holding(literals))


def _begun(spans: pl.DataFrame, partial: Collection[int]) -> set[int]:
    """Sources whose first DETECTION_LINES lie in this block: a signature among those decides."""
    is_long = (pl.col("last") >= DETECTION_LINES) | ~pl.col("source").is_in(list(partial))
    return set(spans.filter((pl.col("first") == 1) & is_long)["source"])


def _of(block: pl.DataFrame, sources: Collection[int], present: Collection[int]) -> pl.DataFrame:
    if len(sources) == len(present):
        return block
    return block.filter(pl.col("source").is_in(list(sources))) if sources else block.clear()


def _step_like(block: pl.DataFrame) -> pl.DataFrame:
    """How many lines of each source print what a step's lines do: `source`, `step_like`, `loss_like`.

    A line counts with its redraws. Of all forms of lines, whatever their numbers are, the most frequent one counts: a
    step may be printed in lines of several forms.
    """

    def drawn(text: pl.Series) -> pl.Series:
        return (text.str.count_matches(_REDRAW) + 1).clip(upper_bound=_MOST_REDRAWS)

    def steps(text: pl.Series) -> pl.Series:
        return text.str.contains(STEP_VALUES) * drawn(text)

    def losses(text: pl.Series) -> pl.Series:
        return text.str.replace_all(_LOSS_SCALE, "").str.contains(LOSS_VALUES) * drawn(text)

    def form(text: pl.Series) -> pl.Series:
        return text.str.replace_all(_NUMBER, "0").hash() % _MOST_FORMS

    templates = LineTemplates.of(block)
    counts = templates.counts(block["source"])
    number = counts["number"].to_numpy()

    def answers(question: Question, name: Hashable) -> pl.Series:
        return pl.Series(templates.cache.answers(name, question, number), dtype=pl.Int64)

    counts = counts.with_columns(step_like=answers(steps, ("step_like", STEP_VALUES)) * counts["lines"])
    is_likely = counts["step_like"] > 0
    counts, number = counts.filter(is_likely), number[is_likely]
    of_lines = counts.with_columns(
        loss_like=answers(losses, ("loss_like", LOSS_VALUES)) * counts["lines"],
        form=answers(form, ("form", _NUMBER)),
    )
    of_forms = of_lines.group_by("source", "form").agg(pl.col("step_like", "loss_like").sum())
    return of_forms.group_by("source").agg(pl.col("step_like", "loss_like").max())


def _line_spans(block: pl.DataFrame) -> pl.DataFrame:
    """First and last line of each source of a block: `source`, `first`, `last`."""
    stretches = block["source"].rle().struct.unnest()
    lengths = stretches["len"].to_numpy().astype(np.int64)
    stops = np.cumsum(lengths)
    line_no = block["line_no"]
    spans = pl.DataFrame({"source": stretches["value"], "first": line_no[stops - lengths], "last": line_no[stops - 1]})
    return spans.group_by("source").agg(pl.col("first").min(), pl.col("last").max())
