"""The recipe as a flowchart: what is decided at each step, its branches, and which of them a question takes.

A branch changes the question (fewer GPUs, a larger model, another batch), so that the rules of the way not taken can
be read and held against runs, too. Thresholds are the documents': 10B and 100B parameters, 512 GPUs ("large scale" as
we read it, see `data/rules/rules.toml`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.advice.applicable_rules import question_of
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.reference.rules import Rule

LARGE_SCALE = 512
SMALL_MODEL, LARGE_MODEL = 10e9, 100e9


@dataclass(frozen=True)
class Branch:
    """One way: `changes` are values of the question there, `moves` the settings that its rules act on (empty: any)."""

    id: str
    name: str
    changes: Mapping[str, Any]
    moves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What is asked at a step, its branches, and the id of the one that the question takes (None: none of them)."""

    id: str
    step: str
    asks: str
    branches: tuple[Branch, ...]
    own: str | None


BOTTLENECKS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "dp": ("data-parallel exchange", ("dp",), ("dp", "pp", "zero_stage")),
    "tp": ("tensor-parallel exchange", ("tp", "cp", "ep"), ("tp", "cp", "ep")),
    "pp": ("pipeline idle time", ("bubble", "pp"), ("pp", "gas", "vpp")),
    "kernels": ("small kernels, recomputation", ("stall", "recompute"), ("mbs", "recompute", "gas")),
}
"""Bottleneck: its name, the parts of a step time that it is, and the settings that act on it."""


def decisions(request: Request, layouts: pl.DataFrame) -> list[Decision]:
    """The decisions for a question; the bottleneck is what the first of `layouts`, those of a search, loses most to."""
    question = question_of(request)
    sequences = question["gbs_tokens"] // question["seq_len"]
    gpus = request.num_gpus
    size = "small" if question["params"] < SMALL_MODEL else "medium" if question["params"] <= LARGE_MODEL else "large"
    return [
        Decision(
            "memory",
            "fit",
            "How much memory for the states?",
            (Branch("rich", "GPU-rich", {"is_gpu_poor": False}), Branch("poor", "GPU-poor", {"is_gpu_poor": True})),
            "poor" if question["is_gpu_poor"] else "rich",
        ),
        Decision(
            "size",
            "fit",
            "How large is the model?",
            (
                _own_or("small", "below 10B", {"params": 5e9}, size),
                _own_or("medium", "10B to 100B", {"params": 40e9}, size),
                _own_or("large", "above 100B", {"params": 200e9}, size),
            ),
            size,
        ),
        Decision(
            "batch",
            "batch",
            "At one sequence per rank, the batch is",
            (
                Branch("below", "too small", {"gbs_tokens": _batch(question, max(sequences, 4 * gpus))}, _RAISE),
                Branch("above", "too large", {"gbs_tokens": _batch(question, min(sequences, gpus // 2))}, _LOWER),
            ),
            "below" if sequences > gpus else "above" if sequences < gpus else None,
        ),
        Decision(
            "bottleneck",
            "throughput",
            "What costs most beside computing?",
            tuple(Branch(name, words, {}, moves) for name, (words, _, moves) in BOTTLENECKS.items()),
            bottleneck(layouts),
        ),
    ]


_RAISE, _LOWER = ("dp", "gas", "cp"), ("tp", "pp", "dp")


def _own_or(name: str, words: str, changes: Mapping[str, Any], own: str) -> Branch:
    return Branch(name, words, {} if name == own else changes)


def _batch(question: Mapping[str, Any], sequences: int) -> int:
    return max(int(sequences), 1) * int(question["seq_len"])


def bottleneck(layouts: pl.DataFrame) -> str | None:
    """What the best layout loses most to, a key of BOTTLENECKS; None where it loses nothing or there is no layout."""
    if layouts.is_empty():
        return None
    best = layouts.row(0, named=True)
    lost = {
        name: sum(float(best.get(f"est_time_{part}_s") or 0.0) for part in parts)
        for name, (_, parts, _) in BOTTLENECKS.items()
    }
    most = max(lost, key=lambda name: lost[name])
    return most if lost[most] > 0 else None


def chosen_branches(made: Sequence[Decision], wanted: Mapping[str, str]) -> dict[str, Branch]:
    """The branch of each decision: the wanted one, else the question's own, else the first."""
    found = {}
    for decision in made:
        by_id = {branch.id: branch for branch in decision.branches}
        found[decision.id] = by_id.get(wanted.get(decision.id, ""), by_id.get(decision.own or "", decision.branches[0]))
    return found


def questions(request: Request, made: Sequence[Decision], chosen: Mapping[str, Branch]) -> dict[str, dict[str, Any]]:
    """By step, the question as the chosen branches change it."""
    own = question_of(request)
    steps: dict[str, dict[str, Any]] = {decision.step: dict(own) for decision in made}
    for decision in made:
        steps[decision.step].update(chosen[decision.id].changes)
    return steps


def is_about(rule: Rule, moves: Sequence[str]) -> bool:
    """Whether a rule advises on one of the settings; every rule does where none is named."""
    return not moves or bool(set(moves) & set(pl.sql_expr(rule.advice).meta.root_names()))
