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

    Even: as many on each, the remainder on the first ones (Megatron refuses a remainder; torchtitan does so). By cost:
    nanotron's rule (`models/base.py: build_model`, `models/llama.py: get_block_compute_costs`): blocks in order, the
    head costing its parameters, and the next stage begins after the block that fills a stage's share of all costs. So
    the first stages are the fuller ones. Two details are as measured (memory per micro-batch and step time of the
    playbook's runs) where the published code would differ: a share met exactly is full, and the head is always on
    the last stage.

    >>> from sweepscope.pipeline.reference.models import LLAMA_2_7B
    >>> place_layers(LLAMA_2_7B, 4, placement="even")
    [8, 8, 8, 8]
    """
    layers = shape.num_layers
    if placement == EVEN or pp == 1:
        return [layers // pp + (stage < layers % pp) for stage in range(pp)]
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
