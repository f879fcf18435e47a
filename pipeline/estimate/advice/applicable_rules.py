"""Which rules a question meets and which layouts follow them: conditions of the rule book on frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.physics.memory import state_bytes_per_param
from sweepscope.pipeline.estimate.physics.profile import load_profiles
from sweepscope.pipeline.estimate.rows.stated_facts import with_usual_facts
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.layout_text import LAYOUT
from sweepscope.pipeline.reference.rules import QUESTION, Book, Rule, load_rules
from sweepscope.schemas.thresholds import GPU_POOR_SHARE


def usual_state_bytes(framework: str | None) -> float:
    """Bytes of states per parameter of a framework's runs that state nothing else."""
    return state_bytes_per_param(with_usual_facts(load_profiles()["default"], framework))


def state_bytes_per_gpu(request: Request) -> float:
    """Least bytes of weights, gradients and optimizer states on each accelerator, sharded over all of them."""
    return state_bytes_per_param(request.asked.profile) * request.asked.shape.params / request.num_gpus


def question_columns(layouts: pl.DataFrame) -> pl.DataFrame:
    """`layouts` (columns of `ranked_layouts`, `num_experts` where known) with the columns of QUESTION and LAYOUT.

    A question is GPU-poor when its states take more than GPU_POOR_SHARE of all memory. Degrees that are not stated are
    1; nodes whose size is not stated have the accelerator's usual one. Where links join hosts (an NVL72 rack), what
    they join is the node that rules speak of.
    """
    clusters = {name: find_cluster(name) for name in layouts["accelerator"].drop_nulls().unique()}
    known = {name: cluster for name, cluster in clusters.items() if cluster is not None}
    node_sizes = {name: cluster.gpus_per_node for name, cluster in known.items()}
    racks = {name: one.gpus_per_domain for name, one in known.items() if one.gpus_per_domain > one.gpus_per_node}
    memory = {name: cluster.memory_bytes for name, cluster in known.items()}
    experts = pl.col("num_experts") if "num_experts" in layouts.columns else pl.lit(None, pl.Int64)
    missing = [pl.lit(None).alias(name) for name in LAYOUT if name not in layouts.columns]
    rack = pl.col("accelerator").replace_strict(racks, default=None, return_dtype=pl.Int64)
    node_size = pl.col("accelerator").replace_strict(node_sizes, default=None, return_dtype=pl.Int64)
    room = GPU_POOR_SHARE * pl.col("accelerator").replace_strict(memory, default=None, return_dtype=pl.Float64)
    return layouts.with_columns(
        *missing,
        pl.col("params").cast(pl.Float64),
        gpus_per_node=pl.coalesce(rack, "gpus_per_node", node_size),
        is_moe=(experts > 1).fill_null(False),
        is_gpu_poor=(_bytes_per_param(layouts) * pl.col("params") / pl.col("num_gpus") > room).fill_null(False),
    ).with_columns(
        *(pl.col(name).cast(pl.Int64).fill_null(1) for name in ("cp", "ep", "vpp")),
        recompute=pl.col("recompute").cast(pl.String).fill_null("none"),
    )


def _bytes_per_param(layouts: pl.DataFrame) -> pl.Expr:
    usual = pl.lit(usual_state_bytes(None))
    if "framework" not in layouts.columns:
        return usual
    words = layouts["framework"].cast(pl.String).drop_nulls().unique()
    by_framework = {word: usual_state_bytes(word) for word in words}
    name = pl.col("framework").cast(pl.String)
    return name.replace_strict(by_framework, default=None, return_dtype=pl.Float64).fill_null(usual)


def question_of(request: Request) -> dict[str, Any]:
    """The columns of QUESTION for the question of a search."""
    asked = request.asked
    memory = asked.cluster.memory_bytes
    return {
        "params": float(asked.shape.params),
        "num_gpus": request.num_gpus,
        "num_nodes": max(request.num_gpus // asked.cluster.gpus_per_node, 1),
        "gpus_per_node": asked.cluster.gpus_per_domain,
        "seq_len": asked.seq_len,
        "gbs_tokens": request.gbs * asked.seq_len,
        "is_moe": asked.shape.num_experts > 1,
        "is_gpu_poor": state_bytes_per_gpu(request) > GPU_POOR_SHARE * memory,
    }


def applicable(question: Mapping[str, Any], book: Book | None = None) -> list[Rule]:
    """Rules whose condition a question meets. `question` has the names of QUESTION; a NULL meets no condition."""
    book = book or load_rules()
    row = pl.DataFrame([dict(question)], schema=QUESTION)
    return [rule for rule in book.rules if row.select(pl.sql_expr(rule.when).fill_null(False)).item()]


def followers(rule: Rule, layouts: pl.DataFrame, question: Mapping[str, Any]) -> pl.Series:
    """Whether each row of a search's `layouts` follows a rule; NULL outside of the rule's `among`."""
    asked = layouts.with_columns(pl.lit(question[name], kind).alias(name) for name, kind in QUESTION.items())
    follows = pl.when(pl.sql_expr(rule.among)).then(pl.sql_expr(rule.advice))
    return asked.select(follows.alias("follows")).to_series()
