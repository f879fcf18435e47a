"""Values of lines, by the rules of a dialect file: whole columns at a time, NULL in lines that a rule does not find."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.logs.declared.columns import EPOCH_STEP, STEP_TOKENS, Target
from sweepscope.pipeline.logs.declared.line_template import Template
from sweepscope.pipeline.logs.declared.rules import SIGNS_BELOW, Rule, key_regex, pair_regex
from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.line_templates import LineTemplates

UNKNOWN_LENGTH = 1 << 40
"""Steps of an epoch whose length no line prints, until the whole file is read (`steps.counted_on`)."""

_NAMED_GROUP = re.compile(r"\(\?P<(\w+)>")


def candidates(lines: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Those of the lines that hold what every line of the rule holds; the pre-filter of its expressions."""
    if "template" not in lines.columns:
        return lines.filter(holds(rule))
    templates = LineTemplates.of(lines)
    held = [templates.holding([literal]) for literal in rule.contains]
    held += [templates.holding(rule.any_of)] if rule.any_of else []
    held += [~templates.holding(rule.without)] if rule.without else []
    is_held = np.logical_and.reduce(held) if held else np.ones(lines.height, dtype=bool)
    return lines if is_held.all() else lines.filter(is_held)


def holds(rule: Rule) -> pl.Expr:
    """Whether a line is one of the `candidates` of a rule."""
    text = pl.col("text")
    wanted = [text.str.contains(literal, literal=True) for literal in rule.contains]
    if rule.any_of:
        wanted.append(text.str.contains_any(list(rule.any_of)))
    unwanted = [~text.str.contains_any(list(rule.without))] if rule.without else []
    return pl.all_horizontal(*wanted, *unwanted)


def with_values(lines: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """`lines` with the columns that a rule fills, NULL in lines that it does not find."""
    if rule.pairs is not None:
        found = _of_pairs(lines, rule.pairs)
    elif rule.parts:
        found = _of_parts(_texts(lines), rule.parts)
    elif rule.is_blind:
        found = _of_groups(_texts(lines), rule.regex, rule.target_by_group)
    else:
        groups = lines.select(values=pl.col("text").str.extract_groups(rule.expression)).unnest("values")
        found = groups.select(_typed(pl.col(name), kept) for name, kept in rule.target_by_group.items())
    return lines.with_columns(_derived(found, rule))


def with_pairs(lines: pl.DataFrame, pairs: Mapping[str, Target]) -> pl.DataFrame:
    """`lines` with a column per key, NULL by itself where it has no value that can be read (SIGNS_BELOW)."""
    patterns = {
        f"pair {number}": pair_regex(key, kept, SIGNS_BELOW) for number, (key, kept) in enumerate(pairs.items())
    }
    values = extract_each(_texts(lines), patterns)
    typed = [_typed(pl.col(name), kept) for name, kept in zip(patterns, pairs.values(), strict=True)]
    return lines.with_columns(values.select(typed))


def _of_pairs(lines: pl.DataFrame, pairs: Mapping[str, Target]) -> pl.DataFrame:
    """A column per key. One whose value cannot be read spoils the line: a record is whole or a reject."""
    text = pl.col("text")
    keys = {f"pair {number}": key for number, key in enumerate(pairs)}
    patterns = {name: pair_regex(key, pairs[key]) for name, key in keys.items()}
    values = extract_each(_texts(lines), patterns).select(list(keys))
    lacks = values.select(pl.any_horizontal(pl.all().is_null())).to_series()
    part = lines.filter(lacks).select(
        (text.str.contains(key_regex(key)) & ~text.str.contains(patterns[name])).alias(name)
        for name, key in keys.items()
    )
    is_spoilt = lacks.scatter(lacks.arg_true(), part.select(pl.any_horizontal(pl.all())).to_series())
    whole = values.select(pl.when(~is_spoilt).then(pl.col(name)).alias(name) for name in keys)
    return whole.select(_typed(pl.col(name), pairs[key]) for name, key in keys.items())


def _texts(lines: pl.DataFrame) -> pl.DataFrame:
    """`text`, and `template` where there is one."""
    return lines.select(name for name in ("text", "template") if name in lines.columns)


def _of_parts(texts: pl.DataFrame, parts: Sequence[Template]) -> pl.DataFrame:
    """A column per column that the parts fill; the first part that finds it counts."""
    wanted: dict[str, tuple[str, Target]] = {}
    for number, part in enumerate(parts):
        for field in part.fields:
            if field.target:
                wanted[f"{number} {field.target.column}"] = (_only(part.regex, field.target.column), field.target)
    # All at once: lines are put together by their templates once.
    groups = extract_each(texts, {name: pattern for name, (pattern, _) in wanted.items()})
    columns: dict[str, list[pl.Series]] = {}
    for name, (_, kept) in wanted.items():
        columns.setdefault(kept.column, []).append(groups.select(_typed(pl.col(name), kept)).to_series())
    return pl.DataFrame(pl.select(pl.coalesce(found).alias(name)).to_series() for name, found in columns.items())


def _of_groups(texts: pl.DataFrame, expression: str, targets: Mapping[str, Target]) -> pl.DataFrame:
    """A column per named group of an expression that is safe in Python.

    One search per group, which lines of one template share, is faster than one for all groups in each line.
    """
    patterns = {f"group {name}": _only(expression, name) for name in targets}
    groups = extract_each(texts, patterns)
    return groups.select(_typed(pl.col(name), kept) for name, kept in zip(patterns, targets.values(), strict=True))


def _only(expression: str, name: str) -> str:
    """The expression with one of its named groups as its first."""
    return _NAMED_GROUP.sub(lambda found: "(" if found[1] == name else "(?:", expression)


def _derived(values: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """`values` with the columns that follow from EPOCH_COLUMNS and STEP_TOKENS."""
    if {EPOCH_STEP, STEP_TOKENS}.isdisjoint(rule.columns):
        return values

    def known(name: str) -> pl.Expr:
        return pl.col(name) if name in values.columns else pl.lit(None, STEP_FACTS.get(name, pl.Int64()))

    epoch, length = known("epoch") - rule.first_epoch, pl.coalesce(known("epoch_steps"), pl.lit(rule.epoch_steps))
    step = epoch * pl.coalesce(length, UNKNOWN_LENGTH) + known(EPOCH_STEP)
    number, planned = (pl.when(epoch >= 0).then(step).otherwise(None), known("epochs") * length)
    if rule.epoch_line:  # of its epoch, until that is known
        number, planned = known(EPOCH_STEP), length
    tokens, time, rate = known(STEP_TOKENS), known("step_time_s"), known("tokens_per_s")
    return values.with_columns(
        step=pl.coalesce(known("step"), number),
        steps_planned=pl.coalesce(known("steps_planned"), planned),
        step_time_s=pl.coalesce(time, pl.when(rate > 0).then(tokens / rate)),
        tokens_per_s=pl.coalesce(rate, pl.when(time > 0).then(tokens / time)),
    )


def _typed(text: pl.Expr, kept: Target) -> pl.Expr:
    value = kept.printed.read(text)
    if kept.dtype == pl.Int64:
        value = value.round().cast(pl.Int64, strict=False)
    elif kept.dtype not in (pl.String, pl.Boolean):
        value = value.cast(kept.dtype, strict=False)
    return value.alias(kept.column)
