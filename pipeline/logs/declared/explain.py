"""What a dialect file makes of a log: what matched, what nearly matched and where it stopped, and what did not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.line_template import Element, Literal, Maybe
from sweepscope.pipeline.logs.declared.near import Near, near_line
from sweepscope.pipeline.logs.declared.rules import Arguments, Document, Rule
from sweepscope.pipeline.logs.declared.steps import below, is_near
from sweepscope.pipeline.logs.declared.values import candidates, holds, with_values
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine.cleaning import with_numbers
from sweepscope.pipeline.logs.engine.detect import count_signatures, detect
from sweepscope.pipeline.logs.facts import Facts
from sweepscope.pipeline.text.line_templates import LineTemplates

MAX_SHOWN = 5
_SHAPES_SHOWN = 8
_NAMES_SHOWN = 20
_MIN_TELLING_CHARS = 4
FAR_MORE = 3
"""A dialect without a signature reads a log that another one knows where it finds so many times as many steps."""


@dataclass(frozen=True)
class Found:
    """What one rule makes of the log. `values` are those of the first line found, with their columns."""

    label: str
    location: str
    pattern: str
    lines: int
    line_no: int | None
    text: str
    values: dict[str, Any]
    nearly: int
    near: tuple[Near, ...]
    unused: tuple[str, ...] = ()
    unmapped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """Lines that differ in their numbers only, none of them found by a rule."""

    lines: int
    line_no: int
    text: str


@dataclass(frozen=True)
class Explanation:
    """What a dialect file makes of a log. `owner` is the dialect that would read it, None without any signature."""

    lines: int
    owner: str | None
    signature: dict[str, int]
    steps: int
    rejects: int
    settings: dict[str, str]
    rules: tuple[Found, ...]
    unmatched: int
    shapes: tuple[Shape, ...] = field(default=())


def explain(rows: pl.DataFrame, document: Document, others: Sequence[Dialect]) -> Explanation:
    """What `document` makes of the cleaned lines of a log (`cleaning.clean`), which one of `others` may own."""
    dialect = compile_document(document)
    rows = with_numbers(rows) if dialect.has_numbered_lines else rows
    dialects = [dialect, *others]
    signature_hits = count_signatures(rows, LineTemplates.of(rows), dialects)
    known_by = next(iter(detect(signature_hits, dialects).values()), None)
    rows = rows.with_row_index("row")
    hits = {rule.label: is_found(rows, rule) for rule in (*document.steps, *document.settings, *document.events)}
    values_below = [(rule, below(rows, rule)) for rule in document.steps if rule.below]
    step_lines = _any([hits[rule.label] for rule in document.steps])
    found = [_found(rows, rule, hits[rule.label], near_to=~step_lines, is_step=True) for rule in document.steps]
    found += [_found_below(rule, values) for rule, values in values_below]
    found += [
        _found(rows, rule, hits[rule.label], near_to=~hits[rule.label], is_step=False)
        for rule in (*document.settings, *document.events)
    ]
    dumps = [_dumped(rows, dump) for dump in document.arguments]
    is_below = [rows["row"].is_in(values["row"].implode()) for _, values in values_below]
    is_above = [rows["text"].str.contains(rule.epoch_line.regex) for rule in document.steps if rule.epoch_line]
    is_known = _any([*hits.values(), *(hit for hit, _ in dumps), *is_below, *is_above])
    bare = rows.drop("row")
    facts = Facts.empty()
    facts = replace(facts, steps=dialect.steps(bare), settings=dialect.settings(bare), events=dialect.events(bare))
    facts = dialect.finalize(facts) if dialect.finalize else facts
    steps, settings = facts.steps, facts.settings
    other = next((one for one in others if one.name == known_by), None)
    if not document.signature and steps["step"].count():
        others_steps = other.steps(bare).drop_nulls("step").height if other else 0
        known_by = known_by if others_steps * FAR_MORE > steps["step"].count() else document.name
    hits_by_literal = dict(signature_hits.group_by("literal").agg(pl.col("hits").sum()).iter_rows())
    rejects = steps.filter(pl.col("step").is_null())
    rejects = rows.join(rejects, on="line_no", how="semi", maintain_order="left").select("line_no", "text")
    unmatched = rows.filter(~is_known).join(rejects, on=["line_no", "text"], how="anti", maintain_order="left")
    return Explanation(
        lines=rows.height,
        owner=known_by,
        signature={literal: hits_by_literal.get(literal, 0) for literal in document.signature},
        steps=steps["step"].count(),
        rejects=rejects.height,
        settings=dict(settings.select("name", "value").iter_rows()),
        rules=(*found, *(report for _, report in dumps)),
        unmatched=unmatched.height,
        shapes=tuple(_shapes(unmatched)),
    )


def is_found(rows: pl.DataFrame, rule: Rule) -> pl.Series:
    """Which lines a rule finds."""
    if rule.pairs is not None or rule.parts:
        likely = with_values(candidates(rows, rule).select("row", "text"), rule)
        values = pl.any_horizontal(pl.col(name).is_not_null() for name in rule.columns if name in likely.columns)
        wanted = pl.col("step").is_not_null() if rule.counts_steps else values
        return rows["row"].is_in(likely.filter(wanted)["row"].implode())
    return rows.select(holds(rule) & pl.col("text").str.contains(rule.expression)).to_series()


def _any(parts: Sequence[pl.Series]) -> pl.Series:
    return (
        pl.DataFrame([part.alias(str(at)) for at, part in enumerate(parts)]).select(pl.any_horizontal("*")).to_series()
    )


def _found(rows: pl.DataFrame, rule: Rule, hit: pl.Series, *, near_to: pl.Series, is_step: bool) -> Found:
    missed = rows.filter(near_to & rows.select(_begins(rule, is_step=is_step)).to_series())
    missed = missed.with_columns(is_reject=is_near(rule) if is_step else pl.lit(value=False))
    if is_step and (hit.any() or missed["is_reject"].any()):
        missed = missed.filter("is_reject")  # lines that merely begin alike are of use only while nothing fits
    near = [
        near_line(line_no, text, rule, is_reject=is_reject)
        for line_no, text, is_reject in missed.head(MAX_SHOWN).select("line_no", "text", "is_reject").iter_rows()
    ]
    first = rows.filter(hit).head(1)
    values: dict[str, Any] = {}
    if first.height and rule.columns:
        filled = with_values(first.select("text"), rule).drop("text").row(0, named=True)
        values = {name: value for name, value in filled.items() if value is not None}
    return Found(
        label=rule.label,
        location=rule.location,
        pattern=_pattern(rule),
        lines=int(hit.sum()),
        line_no=first["line_no"].item() if first.height else None,
        text=first["text"].item() if first.height else "",
        values=values,
        nearly=missed.height,
        near=tuple(near),
    )


def _found_below(rule: Rule, values: pl.DataFrame) -> Found:
    """What the keys below a step give."""
    first = values.head(1)
    kept = {target.column for target in rule.below.values()}
    shown = first.select(name for name in values.columns if name in kept).to_dicts()
    return Found(
        label=f"{rule.label}, below",
        location=rule.location,
        pattern=", ".join(rule.below),
        lines=values.height,
        line_no=first["line_no"].item() if shown else None,
        text=first["text"].item() if shown else "",
        values={name: value for row in shown for name, value in row.items() if value is not None},
        nearly=0,
        near=(),
    )


def _pattern(rule: Rule) -> str:
    if rule.template:
        return "".join(_written(part) for part in rule.template.elements)
    if rule.parts:
        return ", ".join("".join(_written(element) for element in part.elements) for part in rule.parts)
    return rule.regex or ", ".join(rule.pairs or {})


def _written(part: Element) -> str:
    if isinstance(part, Maybe):
        return "{?" + "".join(_written(inner) for inner in part.parts) + "?}"
    return re.sub(r"\s+", " ", part.text)


def _begins(rule: Rule, *, is_step: bool) -> pl.Expr:
    """Lines worth showing beside those that a rule finds."""
    text = pl.col("text")
    if rule.template is None or not rule.template.fields:
        return holds(rule) if is_step or rule.template is None else pl.lit(value=False)
    if is_step:
        return text.str.contains(rule.template.upto(rule.template.head))
    words = rule.template.elements[0]
    is_telling = isinstance(words, Literal) and len(words.text.strip()) >= _MIN_TELLING_CHARS
    return text.str.contains(rule.template.upto(1)) if is_telling else pl.lit(value=False)


def _dumped(rows: pl.DataFrame, dump: Arguments) -> tuple[pl.Series, Found]:
    printed = (
        rows.select("row", "line_no", "text", pair=pl.col("text").str.extract_all(dump.regex))
        .explode("pair")
        .drop_nulls("pair")
        .with_columns(name=pl.col("pair").str.extract(dump.regex, 1), value=pl.col("pair").str.extract(dump.regex, 2))
    )
    mine = printed.filter(pl.col("name").is_in(list(dump.columns)))
    hit = rows["row"].is_in(mine["row"].implode())
    names = printed["name"].unique(maintain_order=True).to_list()
    first = mine.head(1)
    report = Found(
        label=dump.label,
        location=dump.location,
        pattern="",
        lines=int(hit.sum()),
        line_no=first["line_no"].item() if first.height else None,
        text=first["text"].item() if first.height else "",
        values={dump.columns[first["name"].item()]: first["value"].item()} if first.height else {},
        nearly=0,
        near=(),
        unused=tuple(name for name in dump.columns if name not in names),
        unmapped=tuple(name for name in names if name not in dump.columns)[:_NAMES_SHOWN],
    )
    return hit, report


def _shapes(unmatched: pl.DataFrame) -> list[Shape]:
    """The most frequent kinds of lines with numbers that no rule finds."""
    shape = pl.col("text").str.replace_all(r"[0-9]+(?:[.,][0-9]+)*", "0")
    counted = (
        unmatched.filter(pl.col("text").str.contains(r"[0-9]"))
        .group_by(shape.alias("shape"), maintain_order=True)
        .agg(lines=pl.len(), line_no=pl.col("line_no").first(), text=pl.col("text").first())
        .sort("lines", descending=True, maintain_order=True)
    )
    return [Shape(*row) for row in counted.head(_SHAPES_SHOWN).select("lines", "line_no", "text").iter_rows()]
