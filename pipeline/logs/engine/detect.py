"""Which dialect a file is read by: each framework prints texts that no other one does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.text.line_templates import LineTemplates
from sweepscope.pipeline.text.literals import Literals

SIGNATURE_HITS = pl.Schema({"source": pl.Int64, "literal": pl.String, "is_early": pl.Boolean, "hits": pl.Int64})
"""One row per source and signature literal: how often the literal occurs."""

LAST_LINES = pl.Schema({"source": pl.Int64, "last_line": pl.Int64, "step_like": pl.Int64, "loss_like": pl.Int64})
"""One row per source: how far it has been read, and how many of these lines print what a step's do, or a loss.

In any words; of the most frequent form of lines in each block.
"""

_OWNERS = pl.Schema(
    {"dialect": pl.String, "is_declared": pl.Boolean, "is_last": pl.Boolean, "order": pl.Int64, "literal": pl.String}
)

_RANKS = pl.Schema({"source": pl.Int64, "dialect": pl.String, "distinct": pl.Int64, "total": pl.Int64})

DETECTION_LINES = 2_000
"""Lines that decide which dialect a file is of; only a file without any signature in them is searched further."""


def signature_literals(dialects: Sequence[Dialect]) -> set[str]:
    """The signature literals of all dialects."""
    return {literal for dialect in dialects for literal in dialect.signature_literals}


def count_signatures(rows: pl.DataFrame, templates: LineTemplates, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """SIGNATURE_HITS of lines; a literal within another one counts, too.

    Args:
        rows: `source`, `line_no`.
        templates: of the same lines.
        dialects: whose signature literals are looked for.
    """
    if rows.is_empty():
        return pl.DataFrame(schema=SIGNATURE_HITS)
    wanted = Literals.of(frozenset(signature_literals(dialects)))
    keys = rows.select("source", is_early=pl.col("line_no") <= DETECTION_LINES, template=pl.Series(templates.number))
    numbers, samples = templates.distinct()
    of_templates = _occurrences(samples, wanted.plain).with_columns(template=pl.lit(pl.Series(numbers)).gather("row"))
    counted = keys.group_by(pl.all()).agg(hits=pl.len()).join(of_templates, on="template")
    numbered = np.flatnonzero(templates.holding(wanted.numbered))
    of_lines = _occurrences(templates.text.gather(numbered), wanted.numbered)
    single = keys[numbered[of_lines["row"].to_numpy()]].with_columns(of_lines["literal"], hits=pl.lit(1, pl.UInt32))
    names = ["source", "literal", "is_early"]
    hits = pl.concat([frame.select(*names, "hits") for frame in (counted, single)])
    return hits.group_by(names).agg(pl.col("hits").sum()).cast(SIGNATURE_HITS)


def _occurrences(text: pl.Series, literals: Sequence[str]) -> pl.DataFrame:
    """Every occurrence of a literal, also within another one: `row` (index of the text) and `literal`."""
    if not literals:
        return pl.DataFrame(schema={"row": pl.Int64, "literal": pl.String})
    found = pl.select(row=pl.int_range(text.len()), literal=text.str.extract_many(list(literals), overlapping=True))
    return found.explode("literal").drop_nulls()


def detect(signature_hits: pl.DataFrame, dialects: Sequence[Dialect]) -> dict[int, str]:
    """Dialect by source: a declared one first, then by distinct signature literals, by hits, by order of `dialects`.

    A declared dialect comes first because its author knows its logs: they may well hold lines like nanoGPT's. One of
    last resort comes last. The first DETECTION_LINES decide where they hold any signature, so that a long file need not
    be searched further.

    Args:
        signature_hits: SIGNATURE_HITS rows.
        dialects: those that may own a source; a source without any of their literals is left out.
    """
    best = rank_dialects(signature_hits, dialects).unique("source", keep="first", maintain_order=True)
    return dict(zip(best["source"].to_list(), best["dialect"].to_list(), strict=True))


def rank_dialects(signature_hits: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Candidates of each source, the one that `detect` chooses first: `source`, `dialect`, `distinct`, `total`.

    `distinct` counts the signature literals found, `total` how often they occur.
    """
    if signature_hits.is_empty():
        return pl.DataFrame(schema=_RANKS)
    counted = signature_hits.filter(pl.col("is_early") == pl.col("is_early").any().over("source"))
    owners = pl.DataFrame(
        [
            (d.name, d.is_declared, d.is_last_resort, order, literal)
            for order, d in enumerate(dialects)
            for literal in set(d.signature_literals)
        ],
        schema=_OWNERS,
        orient="row",
    )
    scores = (
        counted.join(owners, on="literal")
        .group_by("source", "dialect", "is_declared", "is_last", "order")
        .agg(distinct=pl.col("literal").n_unique(), total=pl.col("hits").sum())
    )
    ranked = scores.sort(
        ["source", "is_declared", "is_last", "distinct", "total", "order"],
        descending=[False, True, False, True, True, False],
    )
    return ranked.select(_RANKS.names()).cast(_RANKS)
