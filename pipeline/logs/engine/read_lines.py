"""Cleaned lines to facts, by the functions of one dialect: each sees the lines that hold one of its literals.

Which dialects read which lines is decided in `prefilter` and `extract`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect, LineFacts
from sweepscope.pipeline.logs.engine.cleaning import with_numbers
from sweepscope.pipeline.logs.facts import FACT_SCHEMAS, STEP_FACTS, Facts, conform, in_order
from sweepscope.pipeline.text.line_templates import LineTemplates, with_text

_SIGNED_STEP = r"""(?i)(\b(?:step|iteration|iter)\b["']?\s*[:=]?\s*)-(\d)"""

READ_LINES = 32 << 10
"""Lines that a dialect reads at once: each of its patterns makes a column of them."""


def facts_of_lines(dialect: Dialect, rows: pl.DataFrame) -> Facts:
    """Facts that a dialect finds in cleaned lines of any number of files (`source`, `line_no`, `text` and prefixes)."""
    if rows.is_empty():
        return Facts.empty()
    rows = with_numbers(rows) if dialect.has_numbered_lines else rows
    wanted: dict[str, list[pl.DataFrame]] = {function: [] for function in dialect.literals_by_function}
    for part in rows.iter_slices(READ_LINES):
        templates = LineTemplates.of(part)
        for function, literals in dialect.literals_by_function.items():
            reads_all = dialect.required_literals.issubset(literals)
            wanted[function].append(part if reads_all else part.filter(templates.holding(literals)))

    def facts_of(function: str) -> pl.DataFrame:
        if function not in wanted:
            return getattr(Facts.empty(), function)  # type: ignore[no-any-return]  # a field of Facts by its name
        # As many lines at once as may be: few lines state a setting, and each pass has a price.
        slices = pl.concat(wanted.pop(function)).iter_slices(READ_LINES)
        parts = [_facts_of(dialect, function, lines) for lines in slices]
        return pl.concat(parts) if parts else pl.DataFrame(schema=FACT_SCHEMAS[function])

    return Facts(**{function: facts_of(function) for function in FACT_SCHEMAS})


def _negative_steps(extractor: LineFacts, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """STEP_FACTS rows of lines that the dialect would read if their step were not negative: that step alone."""
    lines = rows.filter(LineTemplates.of(rows).matching(_SIGNED_STEP))
    if lines.is_empty():
        return []
    unsigned = with_text(lines, pl.col("text").str.replace(_SIGNED_STEP, "${1}${2}"))
    read = conform(extractor(unsigned), STEP_FACTS).drop_nulls("step")
    unread = read.join(
        conform(extractor(lines), STEP_FACTS), on=["source", "line_no"], how="anti", maintain_order="left"
    )
    return [conform(unread.select("source", "line_no", -pl.col("step")), STEP_FACTS)] if unread.height else []


def _facts_of(dialect: Dialect, function: str, rows: pl.DataFrame) -> pl.DataFrame:
    extractor: LineFacts = getattr(dialect, function)
    facts = conform(extractor(rows), FACT_SCHEMAS[function])
    if function == "steps":
        facts = pl.concat([facts, *_negative_steps(extractor, rows)])
        # The raw line is kept only where it is needed: for a reject.
        facts = facts.with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return in_order(facts)  # a few at a time: to sort all of a file in the end would hold them twice
