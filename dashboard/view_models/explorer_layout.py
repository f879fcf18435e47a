"""Answers of the estimator on one layout of a question: memory and time by part, and measured runs like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl

from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.pipeline.estimate.learned.expected import expect
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.ratio_columns import ratio_columns
from sweepscope.pipeline.estimate.physics.ratios import DIMENSIONS
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.whatif import Choice, layouts_for


@dataclass(frozen=True)
class Part:
    """One bar of a breakdown: its size, and the sum of those before it. `kind`: "part", "lost" or "total"."""

    name: str
    size: float
    before: float
    kind: str


_MEMORY = {
    "weights": "Weights",
    "gradients": "Gradients",
    "optimizer": "Optimizer states",
    "activations": "Activations",
    "logits": "Logits",
    "buffers": "Buffers",
}
_TIME = {
    "linear": "Matrix products",
    "attention": "Attention",
    "head": "Output head",
    "elementwise": "Norms and launches",
    "optimizer": "Optimizer",
    "rest": "Fixed cost",
    "recompute": "Recomputation",
    "tp": "TP communication",
    "cp": "CP communication",
    "ep": "Expert exchange",
    "pp": "PP transfers",
    "dp": "DP communication",
    "stall": "Launch stalls",
    "bubble": "Pipeline bubble",
    "stragglers": "Slowest node",
}
_USEFUL = ("linear", "attention", "head")
_SELDOM = ("cp", "ep", "recompute", "stall", "stragglers")  # listed only where a layout has them


@dataclass(frozen=True)
class Answer:
    """The estimate of one layout. `need_bytes` is what the card must hold, what lies outside the framework included.

    `penalty`, `interval` (of MFU) and `interval_basis` are those of comparable runs, None where there are too few.
    `ratios` are the estimate's columns of that name, with est_mfu and the parts of the step that communicate.
    """

    choice: Choice
    dp: int
    gas: int
    fits: bool
    mfu: float
    tokens_per_s_per_gpu: float
    step_time_s: float
    need_bytes: float
    card_bytes: float
    memory: tuple[Part, ...]
    time: tuple[Part, ...]
    penalty: float | None = None
    interval: tuple[float, float] | None = None
    interval_basis: str | None = None
    ratios: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def likely_mfu(self) -> float:
        """What a run is expected to reach: physics over the learned penalty, where there is one."""
        return self.mfu / (self.penalty or 1.0)

    @property
    def row(self) -> dict[str, Any]:
        """Knobs and what follows from them, as rows of a search have them."""
        knobs = {entry.name: getattr(self.choice, entry.name) for entry in fields(Choice)}
        return {"dp": self.dp, "gas": self.gas, **knobs}


def answer_for(request: Request, choice: Choice) -> Answer:
    """The estimate of a layout that can be launched."""
    layouts = layouts_for(request, [choice])
    predicted = estimate(request.asked, layouts)
    outside = request.asked.profile.outside_bytes
    runs = {name: values[0] for name, values in expect(request.asked, layouts, predicted).items()}
    has_interval = runs["est_mfu_lo"] is not None and runs["est_mfu_hi"] is not None
    return Answer(
        choice=choice,
        dp=int(_only(layouts.dp)),
        gas=int(_only(layouts.gas)),
        fits=bool(_only(predicted.fits)),
        mfu=_only(predicted.mfu),
        tokens_per_s_per_gpu=_only(predicted.tokens_per_s_per_gpu),
        step_time_s=_only(predicted.step_time_s),
        need_bytes=_only(predicted.stages.reserved) + outside,
        card_bytes=request.asked.cluster.memory_bytes,
        memory=_memory_parts(predicted, outside),
        time=_time_parts(predicted),
        penalty=runs["est_penalty"],
        interval=(runs["est_mfu_lo"], runs["est_mfu_hi"]) if has_interval else None,
        interval_basis=runs["est_interval_basis"],
        ratios=_ratios(request, layouts, predicted),
    )


def _ratios(request: Request, layouts: Layouts, predicted: Estimate) -> dict[str, float | None]:
    columns = {
        **ratio_columns(request.asked, layouts, predicted),
        **{f"est_time_{name}_s": getattr(predicted.time, name) for name in DIMENSIONS},
        "est_mfu": predicted.mfu,
    }
    values = {name: _only(column) for name, column in columns.items()}
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _only(values: Any) -> float:
    """The value of an array with one element, of any shape."""
    return float(np.ravel(values)[0])


def _memory_parts(predicted: Estimate, outside: float) -> tuple[Part, ...]:
    sizes = [
        (_MEMORY.get(part.name, part.name.replace("_", " ").capitalize()), getattr(predicted.memory, part.name))
        for part in fields(Memory)
    ]
    sizes.append(("Fragmentation", predicted.stages.fragmentation))
    if outside:
        sizes.append(("CUDA context", np.array([outside])))
    return _stacked([(name, _only(size), "part") for name, size in sizes], "Needed")


def _time_parts(predicted: Estimate) -> tuple[Part, ...]:
    known = {part.name: _only(getattr(predicted.time, part.name)) for part in fields(StepTime)}
    order = [*_TIME, *(name for name in known if name not in _TIME)]
    rows = [
        (_TIME.get(name, name.replace("_", " ").capitalize()), known[name], "part" if name in _USEFUL else "lost")
        for name in order
        if name in known and (name not in _SELDOM or known[name] > 0)
    ]
    return _stacked(rows, "Step")


def _stacked(rows: Sequence[tuple[str, float, str]], total: str) -> tuple[Part, ...]:
    parts, level = [], 0.0
    for name, size, kind in rows:
        parts.append(Part(name, size, level, kind))
        level += size
    return (*parts, Part(total, level, 0.0, "total"))


_WEIGHTS = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 0.5, "mbs": 0.5, "num_gpus": 1, "gbs_tokens": 0.5, "seq_len": 1}
"""Distance of a doubling of each value."""
NEAREST = 5


def nearest(runs: pl.DataFrame, answer: Answer, setup: Setup, num_gpus: int) -> pl.DataFrame:
    """The NEAREST of the measured runs, with `distance` (doublings, weighted) and `differs` (columns not the same).

    0 is the same layout on as many accelerators, with the same sequence and batch. What a run does not state it had
    not: a degree is 1, and there was no recomputation. An unknown ZeRO stage, sequence or batch counts as the same.

    Args:
        runs: rows of `queries.explorer.alike`.
        answer: the layout.
        setup: its question.
        num_gpus: accelerators of the question.
    """
    here = {**answer.row, "num_gpus": num_gpus, "gbs_tokens": setup.gbs_tokens, "seq_len": setup.seq_len}
    unstated = dict.fromkeys(_WEIGHTS, 1) | {name: here[name] for name in ("gbs_tokens", "seq_len")}
    doublings = [
        weight * (pl.col(name).fill_null(unstated[name]) / here[name]).log(2).abs() for name, weight in _WEIGHTS.items()
    ]
    zero = 0.25 * (pl.col("zero_stage").fill_null(here["zero_stage"]) - here["zero_stage"]).abs()
    redone = (pl.col("recompute").fill_null("none") != here["recompute"]).cast(pl.Float64)
    near = (
        runs.with_columns(distance=pl.sum_horizontal(*doublings, zero, redone))
        .sort("distance", "tokens_per_s_per_gpu", "run_id", descending=[False, True, False], nulls_last=True)
        .head(NEAREST)
    )
    names = [*_WEIGHTS, "zero_stage", "recompute"]
    assumed = {**unstated, "zero_stage": here["zero_stage"], "recompute": "none"}
    stated = near.with_columns(pl.col(name).fill_null(assumed[name]) for name in names)
    differing = [[name for name in names if row[name] != here[name]] for row in stated.iter_rows(named=True)]
    return near.with_columns(differs=pl.Series(differing, dtype=pl.List(pl.String)))


def reached(runs: pl.DataFrame, answer: Answer, setup: Setup, num_gpus: int, fastest: float) -> float | None:
    """Throughput of the fastest run of this question with this layout over the estimated one; None without such a run.

    Of the layout that should be fastest (its estimate is `fastest` tokens/s/GPU), any run of the question counts.
    """
    here = runs.filter(num_gpus=num_gpus, seq_len=setup.seq_len, gbs_tokens=setup.gbs_tokens)
    if here.height and answer.tokens_per_s_per_gpu < fastest * (1.0 - 1e-9):
        here = nearest(here, answer, setup, num_gpus).filter(pl.col("distance") == 0)
    most = here["tokens_per_s_per_gpu"].max() if here.height else None
    return float(most) / answer.tokens_per_s_per_gpu if isinstance(most, int | float) else None
