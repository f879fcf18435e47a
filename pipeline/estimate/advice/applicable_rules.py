"""Which rules a question meets and which layouts follow them: conditions of the rule book on frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.layout_text import LAYOUT
from sweepscope.pipeline.reference.rules import QUESTION, Book, Rule, load_rules


def question_columns(layouts: pl.DataFrame) -> pl.DataFrame:
    """`layouts` (params, num_gpus, accelerator ... as in `ranked_layouts`) with the columns of QUESTION and LAYOUT.

    Short of memory means that 16 bytes per parameter over all accelerators take more than half of their memory. Degrees
    that are not stated are 1, the node's size is the card's usual one. `num_experts` may be missing.
    """
    cards = {name: find_cluster(name) for name in layouts["accelerator"].drop_nulls().unique()}
    known = {name: card for name, card in cards.items() if card is not None}
    node = {name: card.gpus_per_node for name, card in known.items()}
    room = {name: card.memory_bytes for name, card in known.items()}
    experts = pl.col("num_experts") if "num_experts" in layouts.columns else pl.lit(None, pl.Int64)
    missing = [pl.lit(None).alias(name) for name in LAYOUT if name not in layouts.columns]
    usual = pl.col("accelerator").replace_strict(node, default=None, return_dtype=pl.Int64)
    memory = pl.col("accelerator").replace_strict(room, default=None, return_dtype=pl.Float64)
    return layouts.with_columns(
        *missing,
        pl.col("params").cast(pl.Float64),
        gpus_per_node=pl.coalesce("gpus_per_node", usual),
        is_moe=(experts > 1).fill_null(False),
        is_gpu_poor=(16.0 * pl.col("params") / pl.col("num_gpus") > 0.5 * memory).fill_null(False),
    ).with_columns(
        *(pl.col(name).cast(pl.Int64).fill_null(1) for name in ("cp", "ep", "vpp")),
        recompute=pl.col("recompute").cast(pl.String).fill_null("none"),
    )


def applicable(question: Mapping[str, Any], book: Book | None = None) -> list[Rule]:
    """Rules whose condition a question meets. `question` has the names of QUESTION; a NULL meets no condition."""
    book = book or load_rules()
    row = pl.DataFrame([dict(question)], schema=QUESTION)
    return [rule for rule in book.rules if row.select(pl.sql_expr(rule.when).fill_null(False)).item()]


def followers(rule: Rule, layouts: pl.DataFrame, question: Mapping[str, Any]) -> pl.Series:
    """Which rows of a search's layouts follow a rule; those outside `among` do not speak to it and are NULL."""
    asked = layouts.with_columns(pl.lit(question[name], kind).alias(name) for name, kind in QUESTION.items())
    follows = pl.when(pl.sql_expr(rule.among)).then(pl.sql_expr(rule.advice))
    return asked.select(follows.alias("follows")).to_series()


def question_of(request: Request) -> dict[str, Any]:
    """The columns of QUESTION for what a search asks."""
    asked = request.asked
    return {
        "params": float(asked.shape.params),
        "num_gpus": request.num_gpus,
        "num_nodes": max(request.num_gpus // asked.cluster.gpus_per_node, 1),
        "gpus_per_node": asked.cluster.gpus_per_node,
        "seq_len": asked.seq_len,
        "gbs_tokens": request.gbs * asked.seq_len,
        "is_moe": asked.shape.num_experts > 1,
        "is_gpu_poor": 16.0 * asked.shape.params / request.num_gpus > 0.5 * asked.cluster.memory_bytes,
    }
