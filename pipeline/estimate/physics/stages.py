"""Layers of each pipeline stage, as each framework places them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.reference.model_shape import ModelShape

EVEN = "even"


@dataclass(frozen=True)
class Stages:
    """Layers on the first and last stage, and on the fullest stage but the last; with one stage all are num_layers."""

    first: Array
    middle: Array
    last: Array


def place_layers(shape: ModelShape, pp: int, *, placement: str) -> list[int]:
    """Layers of each of `pp` stages.

    Even: as many on each, the remainder on inner stages, then on the first: embedding and head count as a layer each
    where layers do not divide (Megatron's `account_for_*_in_pipeline_split`; torchtitan's
    `pipeline_parallel_first_stage_less_layers` and `..._last_...`; Llama 3, 2407.21783 section 3.3.2). By cost:
    nanotron's rule (`models/base.py: build_model`, `models/llama.py: get_block_compute_costs`): blocks in order, the
    head costing its parameters, and the next stage begins after the block that fills a stage's share of all costs. So
    the first stages are the fuller ones. Two details are as measured (memory per micro-batch and step time of the
    playbook's runs) where the published code would differ: a share met exactly is full, and the head is always on
    the last stage.

    >>> from dataclasses import replace
    >>> from sweepscope.pipeline.reference.models import LLAMA_2_7B
    >>> place_layers(LLAMA_2_7B, 4, placement="even")
    [8, 8, 8, 8]
    >>> place_layers(replace(LLAMA_2_7B, num_layers=30), 4, placement="even")
    [7, 8, 8, 7]
    """
    layers = shape.num_layers
    if placement == EVEN or pp == 1:
        more = [*range(1, pp - 1), 0][: layers % pp]
        return [layers // pp + (stage in more) for stage in range(pp)]
    layer_cost = shape.hidden_size * 4 * shape.value_width + 3 * shape.hidden_size * shape.ffn_hidden_size
    total = layers * layer_cost + shape.embedding_params
    counts, stage = [0] * pp, 0
    for cumulative in accumulate([layer_cost] * layers):
        counts[stage] += 1
        if stage < pp - 1 and cumulative * pp >= total * (stage + 1):
            stage += 1
    return counts


def stage_layers(shape: ModelShape, pp: Array, *, placement: str) -> Stages:
    """Layers on the stages that can be worst, for every layout."""
    degrees, index = np.unique(pp, return_inverse=True)
    rows = []
    for degree in degrees.astype(int):
        counts = place_layers(shape, int(degree), placement=placement)
        rows.append((counts[0], max(counts[:-1] or counts), counts[-1]))
    table = np.array(rows, np.float64).reshape(-1, 3)[index.reshape(pp.shape)]
    return Stages(first=table[..., 0], middle=table[..., 1], last=table[..., 2])
