"""Whose file is it? Each framework prints literals that no other one does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.text.line_templates import Literals, Shapes

SIGNS = pl.Schema({"source": pl.Int64, "literal": pl.String, "is_early": pl.Boolean, "hits": pl.Int64})
"""How often a signature literal stands in a source."""

ENDS = pl.Schema({"source": pl.Int64, "last_line": pl.Int64})
"""How far a source has been read."""

SIGN_LINES = 2_000
"""Lines within which a framework has said who it is; only a file without any sign in them is searched further."""


def signature_literals(dialects: Sequence[Dialect]) -> set[str]:
    """The signatures of all dialects."""
    return {literal for dialect in dialects for literal in dialect.signature}


def signs_of(rows: pl.DataFrame, shapes: Shapes, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """SIGNS rows of lines (`source`, `line_no`) of the given shapes; literals within one another count, too."""
    if rows.is_empty():
        return pl.DataFrame(schema=SIGNS)
    asked = Literals.of(frozenset(signature_literals(dialects)))
    places = rows.select("source", is_early=pl.col("line_no") <= SIGN_LINES, shape=pl.Series(shapes.number))
    numbers, samples = shapes.present()
    of_shapes = _held(samples, asked.plain).with_columns(shape=pl.lit(pl.Series(numbers)).gather("row"))
    alike = places.group_by(pl.all()).agg(hits=pl.len()).join(of_shapes, on="shape")
    numbered = np.flatnonzero(shapes.holding(asked.numbered))
    of_lines = _held(shapes.text.gather(numbered), asked.numbered)
    single = places[numbered[of_lines["row"].to_numpy()]].with_columns(of_lines["literal"], hits=pl.lit(1, pl.UInt32))
    names = ["source", "literal", "is_early"]
    found = pl.concat([frame.select(*names, "hits") for frame in (alike, single)])
    return found.group_by(names).agg(pl.col("hits").sum()).cast(SIGNS)


def _held(text: pl.Series, literals: Sequence[str]) -> pl.DataFrame:
    """Every place where a literal stands, also within another one: `row` (index of the text) and `literal`."""
    if not literals:
        return pl.DataFrame(schema={"row": pl.Int64, "literal": pl.String})
    found = pl.select(row=pl.int_range(text.len()), literal=text.str.extract_many(list(literals), overlapping=True))
    return found.explode("literal").drop_nulls()


def detect(signs: pl.DataFrame, dialects: Sequence[Dialect]) -> dict[int, str]:
    """Dialect per source: a declared one, then most distinct signature literals, most hits, the order of `dialects`.

    One of last resort comes behind all others.

    The first SIGN_LINES decide where they hold any signature, so that a long file need not be searched for more. Who
    declares a dialect knows its logs: a script of one's own may well print lines like those of nanoGPT.
    """
    if signs.is_empty():
        return {}
    counted = signs.filter(pl.col("is_early") == pl.col("is_early").any().over("source"))
    claims = pl.DataFrame(
        [
            (d.name, d.is_declared, d.is_last_resort, place, sign)
            for place, d in enumerate(dialects)
            for sign in set(d.signature)
        ],
        schema={
            "dialect": pl.String,
            "is_declared": pl.Boolean,
            "is_last": pl.Boolean,
            "place": pl.Int64,
            "literal": pl.String,
        },
        orient="row",
    )
    claimed = counted.join(claims, on="literal").group_by("source", "dialect", "is_declared", "is_last", "place")
    best = (
        claimed.agg(distinct=pl.col("literal").n_unique(), total=pl.col("hits").sum())
        .sort(
            ["source", "is_declared", "is_last", "distinct", "total", "place"],
            descending=[False, True, False, True, True, False],
        )
        .unique("source", keep="first", maintain_order=True)
    )
    return dict(zip(best["source"].to_list(), best["dialect"].to_list(), strict=True))
