"""How well the rules of a dialect file fit a log: what decides whether a file without a signature reads it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.pipeline.logs.declared.rules import Rule
from sweepscope.pipeline.logs.declared.steps import below
from sweepscope.pipeline.logs.declared.values import candidates, with_values
from sweepscope.pipeline.logs.dialect import Fit

_TOTALS = {"steps_planned", "epochs", "epoch_steps"}
"""Printed beside another value, or not."""


def fit_of(lines: pl.DataFrame, rules: Sequence[Rule], settings: pl.DataFrame) -> Fit:
    """The fit of rules of steps.

    Args:
        lines: `line_no` and `text` of a log, in order.
        rules: of its steps; the one that finds most values counts.
        settings: SETTING_FACTS that other rules of the file have found in the same lines.
    """
    rows = lines.with_row_index("row")
    fits = [_fit(rows, rule) for rule in rules]
    values, wanted = max(((found, wanted) for _, found, wanted in fits), default=(0, 0))
    return Fit(frozenset[int]().union(*(hits for hits, *_ in fits)), values, wanted, frozenset(settings["name"]))


def _fit(rows: pl.DataFrame, rule: Rule) -> tuple[frozenset[int], int, int]:
    """Lines of steps, kinds of values found in them, and how many kinds the rule has."""
    filled = with_values(candidates(rows, rule), rule)
    hits = filled.filter(pl.col("step").is_not_null())
    columns = [name for name in dict.fromkeys(rule.columns) if name not in _TOTALS]
    found = sum(name in hits.columns and hits[name].count() > 0 for name in columns)
    passed = [part.regex for part in rule.parts if not any(field.target for field in part.fields)]
    found += sum(bool(hits["text"].str.contains(regex).any()) for regex in passed)
    values = below(rows, rule) if rule.below else rows.head(0)
    under = {target.column for target in rule.below.values()}
    found += sum(name in values.columns and values[name].count() > 0 for name in under)
    return frozenset(hits["line_no"]), found, len(columns) + len(passed) + len(under)
