"""Questions of the Explorer to the estimator, and their answers.

A setup is the question in a reader's terms: model, accelerator, nodes, sequence, batch, constants. A choice is a
position of the layout's knobs. The search over all layouts of a setup is kept, because sliders ask for it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from sweepscope.dashboard.selection.filters import SLICE
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.pipeline.estimate.learned.expected import expect
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.rows.estimate_rows import ChooseProfile
from sweepscope.pipeline.estimate.rows.model_shape import complete_shape
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import AUTO, PHYSICS, Found, search
from sweepscope.pipeline.estimate.search.whatif import Choice, layouts_for, leanest
from sweepscope.pipeline.reference.clusters import Cluster, find_cluster
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import find_model, known_models, shape_of

CUSTOM = "Custom shape"
POOL = 400
"""Layouts of a search that are kept: enough for rules that the fastest do not follow to find a follower."""
TOP = 20
"""Layouts that the table lists."""
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SEQUENCES = tuple(2**power for power in range(10, 21))
BATCHES = tuple(2**power for power in range(17, 28))


@dataclass(frozen=True)
class Setup:
    """A question without the layout. `gbs_tokens` is a multiple of `seq_len`; `framework` None: constants of the card.

    `gpus_per_node` None is the card's usual number. `by` is how the fastest is chosen: AUTO or PHYSICS.
    """

    model: str
    shape: ModelShape
    accelerator: str
    nodes: int
    seq_len: int
    gbs_tokens: int
    framework: str | None = None
    is_fp8: bool = False
    gpus_per_node: int | None = None
    by: str = AUTO

    def request(self, choose: ChooseProfile) -> Request:
        """The setup as a search takes it. Raises KeyError for an accelerator without a cluster."""
        cluster = find_cluster(self.accelerator, gpus_per_node=self.gpus_per_node)
        if cluster is None:
            raise KeyError(self.accelerator)
        asked = Question(
            self.shape, cluster, choose(cluster.generation, self.framework), self.seq_len, is_fp8=self.is_fp8
        )
        return Request(asked, num_gpus=self.nodes * cluster.gpus_per_node, gbs=self.gbs_tokens // self.seq_len)


@lru_cache(maxsize=48)
def found_for(request: Request, by: str = AUTO) -> Found:
    """The search over all layouts of `request`, kept for the next reader of the same question."""
    return search(request, top=POOL, by=by)


def likely_mfu(frame: pl.DataFrame, ranked_by: str) -> pl.Series:
    """MFU of layouts by what they are ranked by: what physics allows, or that over the learned penalty."""
    if ranked_by == PHYSICS:
        return frame["est_mfu"].alias("likely_mfu")
    return frame.select(likely_mfu=pl.col("est_mfu") / pl.col("est_penalty").fill_null(1.0)).to_series()


@lru_cache(maxsize=64)
def start_of(request: Request, by: str = AUTO) -> Choice:
    """The layout that knobs start from: the fastest that fits, else the leanest that can be launched."""
    found = found_for(request, by)
    if found.fitting:
        return Choice.of(found.layouts.row(0, named=True))
    return leanest(request) or Choice()


def store_models(rows: pl.DataFrame) -> dict[str, ModelShape]:
    """Shapes of the store's models, those whose runs state enough; `rows` as `queries.explorer.models` gives them."""
    found: dict[str, ModelShape] = {}
    for row in read_rows(rows).iter_rows(named=True):
        shape, _, _ = complete_shape(row)
        if shape is not None:
            found.setdefault(row["model"], shape)
    return found


def offered_models(own: Mapping[str, ModelShape]) -> dict[str, ModelShape]:
    """The store's models first, then the registry's."""
    found = dict(own)
    for name in known_models():
        row = find_model(name)
        if row is not None:
            found.setdefault(name, shape_of(row))
    return found


def read_shape(values: Mapping[str, int], *, gated: bool, tied: bool) -> ModelShape | str:
    """A shape from its numbers, or a sentence on what no transformer can have."""
    if values["hidden_size"] % values["num_heads"]:
        return f"A width of {values['hidden_size']} cannot be shared by {values['num_heads']} heads."
    if values["num_heads"] % values["num_kv_heads"]:
        return f"{values['num_heads']} heads cannot share {values['num_kv_heads']} key-value heads."
    has_experts = values["num_experts"] > 0
    if has_experts and values["experts_per_token"] > values["num_experts"]:
        return f"A token cannot meet {values['experts_per_token']} of {values['num_experts']} experts."
    dense = {name: values[name] for name in values if "expert" not in name}
    sparse = {name: values[name] for name in values if "expert" in name} if has_experts else {}
    return ModelShape(**dense, **sparse, gated_mlp=gated, tie_word_embeddings=tied)


def wanted(asked: Mapping[str, Any], grid: Slice | None) -> dict[str, Any]:
    """What the first question should be about: what the address asks for, then the grid that every page begins with."""
    named = {name: value for name, value in asked.items() if value is not None}
    shown = {} if grid is None else {name: getattr(grid, name) for name in SLICE}
    return {**named, **{name: value for name, value in shown.items() if name not in named}}


def default_setup(
    setups: pl.DataFrame, models: Mapping[str, ModelShape], wanted: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The row of `queries.explorer.setups` that most of `wanted` holds for, or a well-known question without one.

    `wanted` is in order of importance: a row that fits the first and misses the rest goes before one the other way.
    """
    fallback = {
        "model": "Llama 3 8B",
        "accelerator": "H100-SXM-80GB",
        "num_nodes": 8,
        "gpus_per_node": None,
        "seq_len": 8192,
        "gbs_tokens": 2**22,
        "framework": None,
    }
    usable = setups.filter(
        pl.col("model").is_in(list(models)) & (pl.col("gbs_tokens") % pl.col("seq_len") == 0)
    ).filter(pl.col("accelerator").map_elements(lambda name: find_cluster(name) is not None, pl.Boolean))
    if usable.is_empty():
        return fallback
    order = [
        (pl.col(name) == pl.lit(value)).fill_null(value=False).cast(pl.Int8).alias(f"is_{name}")
        for name, value in wanted.items()
        if value is not None and name in usable.columns
    ]
    ranked = usable.with_row_index("place").with_columns(order)
    keys = [column.meta.output_name() for column in order]
    return ranked.sort([*keys, "place"], descending=[*[True] * len(keys), False]).row(0, named=True)


@dataclass(frozen=True)
class Pick:
    """The layout that should be fastest in a cell, as a row of a search, with its likely MFU and interval.

    All three are None where nothing fits; `need_bytes` is what the leanest layout needs, NaN where nothing can be
    launched. `url` leads to the same question on the Explorer.
    """

    row: Mapping[str, Any] | None
    mfu: float | None
    interval: tuple[float, float] | None
    need_bytes: float
    url: str

    def value(self, column: str) -> float | None:
        """What is expected of it in a column of the grid: `mfu`, `tokens_per_s_per_gpu` or `step_time_s`."""
        if self.row is None or self.mfu is None:
            return None
        longer = self.row["est_mfu"] / self.mfu
        values = {
            "mfu": self.mfu,
            "tokens_per_s_per_gpu": self.row["est_tokens_per_s_per_gpu"] / longer,
            "step_time_s": self.row["est_step_time_s"] * longer,
        }
        return values.get(column)


def with_own_value(presets: Sequence[int], *values: int | None) -> list[int]:
    """Presets and other values in order.

    >>> with_own_value((1, 2, 4), 3, None)
    [1, 2, 3, 4]
    """
    return sorted({*presets, *(value for value in values if value is not None)})


def batches_for(seq_len: int, gpus: int, *values: int | None) -> list[int]:
    """Batches in tokens that are whole sequences, from one per 16 accelerators to 4,096 per accelerator."""
    presets = [seq_len * 2**power for power in range(22)]
    low, high = seq_len * max(gpus // 16, 1), seq_len * gpus * 4096
    near = [tokens for tokens in (*presets, *BATCHES) if low <= tokens <= min(high, 2**28)]
    return [tokens for tokens in with_own_value(near, *values) if tokens % seq_len == 0]


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
    """Estimate a layout that can be launched."""
    at = layouts_for(request, [choice])
    predicted = estimate(request.asked, at)
    card: Cluster = request.asked.cluster
    outside = request.asked.profile.outside_bytes
    runs = {name: values[0] for name, values in expect(request.asked, at, predicted).items()}
    has_interval = runs["est_mfu_lo"] is not None and runs["est_mfu_hi"] is not None

    def one(values: Any) -> float:
        return float(np.ravel(values)[0])

    return Answer(
        choice=choice,
        dp=int(one(at.dp)),
        gas=int(one(at.gas)),
        fits=bool(one(predicted.fits)),
        mfu=one(predicted.mfu),
        tokens_per_s_per_gpu=one(predicted.tokens_per_s_per_gpu),
        step_time_s=one(predicted.step_time_s),
        need_bytes=one(predicted.stages.reserved) + outside,
        card_bytes=card.memory_bytes,
        memory=_memory_parts(predicted, outside),
        time=_time_parts(predicted),
        penalty=runs["est_penalty"],
        interval=(runs["est_mfu_lo"], runs["est_mfu_hi"]) if has_interval else None,
        interval_basis=runs["est_interval_basis"],
    )


def _memory_parts(predicted: Estimate, outside: float) -> tuple[Part, ...]:
    sizes = [
        (_MEMORY.get(part.name, part.name.replace("_", " ").capitalize()), getattr(predicted.memory, part.name))
        for part in fields(Memory)
    ]
    sizes.append(("Fragmentation", predicted.stages.fragmentation))
    if outside:
        sizes.append(("CUDA context", np.array([outside])))
    return _stacked([(name, float(np.ravel(size)[0]), "part") for name, size in sizes], "Needed")


def _time_parts(predicted: Estimate) -> tuple[Part, ...]:
    known = {part.name: float(np.ravel(getattr(predicted.time, part.name))[0]) for part in fields(StepTime)}
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


_FAR = {
    "tp": 1.0,
    "pp": 1.0,
    "cp": 1.0,
    "ep": 1.0,
    "vpp": 0.5,
    "mbs": 0.5,
    "num_gpus": 1.0,
    "gbs_tokens": 0.5,
    "seq_len": 1.0,
}
NEAREST = 5


def nearest(runs: pl.DataFrame, answer: Answer, setup: Setup, num_gpus: int) -> pl.DataFrame:
    """Measured runs by distance from the layout, with `distance` (doublings, weighted) and what is not the same.

    0 is the same layout on as many accelerators, with the same sequence and batch. An unknown value counts as the
    same: a run that states no recomputation had none.
    """
    here = {**answer.row, "num_gpus": num_gpus, "gbs_tokens": setup.gbs_tokens, "seq_len": setup.seq_len}
    steps = [
        weight
        * (pl.col(name).fill_null(1 if name not in ("gbs_tokens", "seq_len") else here[name]) / here[name]).log(2).abs()
        for name, weight in _FAR.items()
    ]
    zero = 0.25 * (pl.col("zero_stage").fill_null(here["zero_stage"]) - here["zero_stage"]).abs()
    redone = (pl.col("recompute").fill_null("none") != here["recompute"]).cast(pl.Float64)
    near = (
        runs.with_columns(distance=pl.sum_horizontal(*steps, zero, redone))
        .sort("distance", "tokens_per_s_per_gpu", "run_id", descending=[False, True, False], nulls_last=True)
        .head(NEAREST)
    )
    names = [*_FAR, "zero_stage", "recompute"]
    differing = [
        [name for name in names if row[name] is not None and row[name] != here[name]]
        for row in near.iter_rows(named=True)
    ]
    return near.with_columns(differs=pl.Series(differing, dtype=pl.List(pl.String)))
