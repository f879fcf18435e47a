"""Questions of the Explorer to the estimator.

A setup is the question in a reader's terms: model, accelerator, nodes, sequence, batch, constants. A choice is a
position of the layout's knobs. The search over all layouts of a setup is kept, because sliders ask for it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import polars as pl

from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.selection.filters import SLICE
from sweepscope.dashboard.selection.options import listed
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile, question_on
from sweepscope.pipeline.estimate.rows.distinct_rows import distinct_rows
from sweepscope.pipeline.estimate.rows.model_shape import complete_shape
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.rows.software_year import software_years
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import AUTO, PHYSICS, Found, search
from sweepscope.pipeline.estimate.search.whatif import Choice, leanest
from sweepscope.pipeline.reference.clusters import Precision, find_cluster
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


class Software(NamedTuple):
    """What runs state of their software: its year, as of `rows.software_year`, and PyTorch's version; None unknown."""

    year: float | None = None
    torch_version: str | None = None


UNKNOWN_SOFTWARE: Final = Software()


@dataclass(frozen=True)
class Setup:
    """A question without the layout. `gbs_tokens` is a multiple of `seq_len`; `framework` None: constants of the card.

    `gpus_per_node` None is the card's usual number. `by` is how the fastest is chosen: AUTO or PHYSICS. `software` is
    that of the runs it is held against, so that a layout has one estimate, whether it was run or not.
    """

    model: str
    shape: ModelShape
    accelerator: str
    nodes: int
    seq_len: int
    gbs_tokens: int
    framework: str | None = None
    precision: Precision = "bf16"
    gpus_per_node: int | None = None
    by: str = AUTO
    software: Software = UNKNOWN_SOFTWARE

    def request(self, choose: ChooseProfile) -> Request:
        """The setup as a search takes it. Raises KeyError for an accelerator without a cluster."""
        cluster = find_cluster(self.accelerator, gpus_per_node=self.gpus_per_node)
        if cluster is None:
            raise KeyError(self.accelerator)
        asked = question_on(
            cluster,
            self.shape,
            self.seq_len,
            self.precision,
            choose=choose,
            framework=self.framework,
            stated={"software_year": self.software.year, "torch_version": self.software.torch_version},
        )
        return Request(asked, num_gpus=self.nodes * cluster.gpus_per_node, gbs=self.gbs_tokens // self.seq_len)


def newest_software(rows: pl.DataFrame, framework: str | None) -> Software:
    """The newest software of runs, of those of `framework` where it has any; `rows` of `queries.explorer.software`."""
    dated = rows.with_columns(year=software_years(rows)).drop_nulls("year").sort("year", "torch_version")
    of_framework = dated.filter(framework=framework) if framework is not None else dated.clear()
    newest = (of_framework if of_framework.height else dated).tail(1)
    return Software(*newest.select("year", "torch_version").row(0)) if newest.height else UNKNOWN_SOFTWARE


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
    read = read_rows(rows)
    distinct, places = distinct_rows(read)  # a store may have thousands of models of few shapes
    shapes = [complete_shape(row)[0] for row in distinct.iter_rows(named=True)]
    found: dict[str, ModelShape] = {}
    for model, place in zip(read["model"], places, strict=True):
        shape = shapes[place]
        if shape is not None:
            found.setdefault(model, shape)
    return found


def offered_models(of_store: Mapping[str, ModelShape]) -> dict[str, ModelShape]:
    """Shapes by model: the store's first, then the registry's."""
    found = dict(of_store)
    for name in known_models():
        row = find_model(name)
        if row is not None:
            found.setdefault(name, shape_of(row))
    return found


def listed_models(models: Mapping[str, ModelShape], wanted: str | None) -> list[str]:
    """Names to choose from: the first of `offered_models`, those of the registry, and `wanted` if it is one."""
    return listed(models, *known_models(), wanted)


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


def usable(setups: pl.DataFrame, models: Collection[str]) -> pl.DataFrame:
    """Those rows of `queries.explorer.setups` that can be estimated."""
    cards = [name for name in setups["accelerator"].unique() if find_cluster(name) is not None]
    return setups.filter(
        pl.col("model").is_in(list(models))
        & pl.col("accelerator").is_in(cards)
        & (pl.col("gbs_tokens") % pl.col("seq_len") == 0)
    )


def default_setup(setups: pl.DataFrame, models: Mapping[str, ModelShape], wanted: Mapping[str, Any]) -> Row:
    """The setup that the Explorer starts from: of the store, or a well-known model where the store has none.

    That model is asked about on the accelerators, sequence and batch of the store's runs, where they state them.

    Args:
        setups: rows of `queries.explorer.setups`.
        models: those that can be estimated.
        wanted: values by column, the most important first: a row that has the first and misses the others goes
            before one the other way.
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
    rows = usable(setups, models)
    if rows.is_empty():
        of_any_model = usable(setups, setups["model"].to_list())
        if of_any_model.is_empty():
            return fallback
        unknown = {"model": fallback["model"], "framework": None}
        return {**of_any_model.row(0, named=True), **unknown}
    for name, value in wanted.items():
        if value is not None and name in rows.columns:
            matching = rows.filter(pl.col(name) == pl.lit(value))
            rows = matching if matching.height else rows
    return rows.row(0, named=True)


def start_setups(
    setups: pl.DataFrame, models: Mapping[str, ModelShape], asked: Mapping[str, Any], grid: Slice | None
) -> tuple[Row, Row]:
    """(what the selectors start from, the same whatever the nodes that are asked for), as `default_setup` gives them.

    Nodes choose among the runs of the model on its card, so that choosing them changes neither.
    """
    usual = default_setup(setups, models, wanted({**asked, "num_nodes": None}, grid))
    on_card = setups.filter(model=usual["model"], accelerator=usual["accelerator"])
    if asked.get("model") not in (None, usual["model"]) or on_card.is_empty():
        return usual, usual
    return default_setup(on_card, models, wanted(asked, grid)), usual


@dataclass(frozen=True)
class Pick:
    """The layout that should be fastest in a cell, as a row of a search, with its likely MFU and interval.

    All three are None where nothing fits; `need_bytes` is what the leanest layout needs, NaN where nothing can be
    launched. `url` leads to the same question on the Explorer; `constants` says what the estimate rests on.
    """

    row: Row | None
    mfu: float | None
    interval: tuple[float, float] | None
    need_bytes: float
    url: str
    constants: str = ""

    def reached(self, tokens_per_s_per_gpu: float | None) -> float | None:
        """A throughput over the pick's likely one; None where either is unknown."""
        likely = self.value("tokens_per_s_per_gpu")
        return tokens_per_s_per_gpu / likely if tokens_per_s_per_gpu and likely else None

    def counted_as(self, mfu: float | None, tokens_per_s_per_gpu: float | None) -> Pick:
        """The pick with MFU by the FLOPs of a run with this MFU and throughput, so that both can be held together."""
        ours = self.value("tokens_per_s_per_gpu")
        if not (mfu and tokens_per_s_per_gpu and ours and self.mfu) or self.row is None:
            return self
        factor = ours * mfu / tokens_per_s_per_gpu / self.mfu
        ends = self.interval and (factor * self.interval[0], factor * self.interval[1])
        row = {**self.row, "est_mfu": factor * self.row["est_mfu"]}
        return replace(self, row=row, mfu=factor * self.mfu, interval=ends)

    def value(self, column: str) -> float | None:
        """What is expected of it in a column of the grid: `mfu`, `tokens_per_s_per_gpu` or `step_time_s`."""
        if self.row is None or not self.mfu or "est_mfu" not in self.row:
            return None
        longer = self.row["est_mfu"] / self.mfu
        values = {
            "mfu": self.mfu,
            "tokens_per_s_per_gpu": self.row["est_tokens_per_s_per_gpu"] / longer,
            "step_time_s": self.row["est_step_time_s"] * longer,
        }
        return values.get(column)


def with_values(presets: Sequence[int], *values: int | None) -> list[int]:
    """Presets and other values, sorted.

    >>> with_values((1, 2, 4), 3, None)
    [1, 2, 3, 4]
    """
    return sorted({*presets, *(value for value in values if value is not None)})


def batches_for(seq_len: int, gpus: int, *values: int | None) -> list[int]:
    """Batches in tokens that are whole sequences, from one per 16 accelerators to 4,096 per accelerator."""
    presets = [seq_len * 2**power for power in range(22)]
    low, high = seq_len * max(gpus // 16, 1), seq_len * gpus * 4096
    near = [tokens for tokens in (*presets, *BATCHES) if low <= tokens <= min(high, 2**28)]
    return [tokens for tokens in with_values(near, *values) if tokens % seq_len == 0]
