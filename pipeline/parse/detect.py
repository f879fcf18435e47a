"""Whose file is it? Each framework prints literals that no other one does."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from pipeline.parse.protocol import Dialect

SIGNS = pl.Schema({"source": pl.Int64, "literal": pl.String, "is_early": pl.Boolean, "hits": pl.Int64})
"""How often a signature literal stands in a source."""

ENDS = pl.Schema({"source": pl.Int64, "last_line": pl.Int64})
"""How far a source has been read."""

SIGN_LINES = 2_000
"""Lines within which a framework has said who it is; only a file without any sign in them is searched further."""


def held(rows: pl.DataFrame, literals: Collection[str]) -> pl.DataFrame:
    """Every place in the lines where one of the literals stands, also within another one: `row` (its index), `source`,
    `is_early`, `literal`."""
    found = rows.select(
        "source",
        row=pl.int_range(pl.len()),
        is_early=pl.col("line_no") <= SIGN_LINES,
        literal=pl.col("text").str.extract_many(sorted(literals), overlapping=True),
    )
    return found.filter(pl.col("literal").list.len() > 0).explode("literal")


def signature_literals(dialects: Sequence[Dialect]) -> set[str]:
    """The signatures of all dialects."""
    return {literal for dialect in dialects for literal in dialect.signature}


def signs_of(found: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """SIGNS rows of what `held` has found."""
    is_sign = pl.col("literal").is_in(signature_literals(dialects))
    return found.filter(is_sign).group_by("source", "literal", "is_early").agg(hits=pl.len()).cast(SIGNS)


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
