"""Seconds that gradients take to accumulate and the optimizer to update: both wait for memory, not for products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sweepscope.pipeline.estimate.physics.compute import Machine
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.memory import stage_params
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import copies
from sweepscope.pipeline.estimate.physics.stages import Stages
from sweepscope.pipeline.reference.model_shape import ModelShape

_UPDATE_BYTES = 34.0
"""Bytes that an update of Adam reads and writes of each parameter whose states a rank holds."""
_WEIGHT_BYTES = 8.0
"""Bytes that it reads and writes of each parameter whose weights a rank holds, whatever is sharded."""


@dataclass(frozen=True)
class HeldParams:
    """Parameters that a rank of the fullest stage exchanges and updates once a step.

    `dense` are those replicated over dp x cp, `experts` the routed experts', `of_one_stage` both of a single stage:
    half of them where a schedule places two stages on a rank. `layers` are the stage's.
    """

    layers: Array
    dense: Array
    experts: Array
    of_one_stage: Array

    @property
    def total(self) -> Array:
        """Dense ones and experts'."""
        return self.dense + self.experts


def held_params(shape: ModelShape, at: Layouts, stages: Stages) -> HeldParams:
    """Of the stage that holds the most layers, which need not be the slowest one."""
    single = at.pp == 1
    layers = np.maximum(stages.middle, stages.last)
    dense_layers = np.where(single, shape.num_dense_layers, 0.0) if shape.num_experts else layers
    dense, experts = stage_params(shape, at, layers, dense_layers)
    matrices = np.where(single & (not shape.tie_word_embeddings), 2.0, 1.0)
    dense = dense + matrices * shape.embedding_params / at.tp
    # A rank of DualPipe holds two stages, and exchanges and updates both.
    count = np.where(single, 1.0, copies(at))
    return HeldParams(layers=layers, dense=count * dense, experts=count * experts, of_one_stage=dense + experts)


def accumulation_s(asked: Question, on: Machine, at: Layouts, held: HeldParams, linear_s: Array) -> Array:
    """Seconds per step of adding up gradients over micro-batches; a single one needs none.

    `linear_s` are the seconds per step of linear layers' products, forward and backward. A third of them makes the
    gradients; where the framework `fuses_accumulation`, these add them up, and the traffic runs beside their compute.
    """
    profile = asked.profile
    batches = np.where(at.gas > 1, at.gas, 0.0)
    spent = batches * (2.0 * profile.grad_bytes + 2.0) * held.of_one_stage / on.memory_bytes_per_s
    if not profile.fuses_accumulation:
        return spent
    return spent - (1.0 - profile.shard_contention) * np.minimum(spent, linear_s / 3.0)


def update_s(asked: Question, on: Machine, at: Layouts, held: HeldParams) -> Array:
    """Seconds of one update by Adam: of the states that ZeRO leaves on the rank, and of the weights."""
    sharded = held.dense / at.zero_shards + held.experts / at.expert_zero_shards
    states = np.where(at.zero_stage >= 1, sharded, held.total)
    traffic = _UPDATE_BYTES * states + _WEIGHT_BYTES * held.total
    return asked.profile.optimizer_passes * traffic / on.memory_bytes_per_s
