"""Seconds of one training step, by what they are spent on.

The parts add up to the step: compute of the fullest stage, communication that compute does not hide, the pipeline's
idle time, the optimizer. Overlap follows one rule per dimension, its share a constant of the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from sweepscope.pipeline.estimate.physics import collectives as comm
from sweepscope.pipeline.estimate.physics.compute import head_s, machine
from sweepscope.pipeline.estimate.physics.data_parallel import data_parallel_s
from sweepscope.pipeline.estimate.physics.layer_time import layer_time
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.memory import stage_params
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import bubble_share, copies
from sweepscope.pipeline.estimate.physics.stages import Stages


@dataclass(frozen=True)
class StepTime:
    """Seconds per step on the critical path; `total` is their sum."""

    linear: Array
    attention: Array
    elementwise: Array
    head: Array
    recompute: Array
    tp: Array
    cp: Array
    ep: Array
    pp: Array
    dp: Array
    stall: Array
    bubble: Array
    optimizer: Array
    rest: Array
    stragglers: Array

    @property
    def total(self) -> Array:
        """Seconds per step."""
        return sum_parts([getattr(self, part.name) for part in fields(self)])


def step_time(asked: Question, at: Layouts, stages: Stages) -> StepTime:
    """All parts of one step. The fullest stage sets the pace; the rest of the pipeline sets the idle time."""
    shape, cluster, profile = asked.shape, asked.cluster, asked.profile
    on = machine(asked)
    tokens = at.mbs * asked.seq_len / at.cp
    dense = layer_time(asked, on, at, is_moe=False) if shape.num_moe_layers < shape.num_layers else None
    moe = layer_time(asked, on, at, is_moe=True) if shape.num_moe_layers else None
    head_forward, head_backward = head_s(on, shape, tokens, at.tp)
    head = head_forward + head_backward

    single = at.pp == 1
    share = np.where(single, shape.num_dense_layers / shape.num_layers, 0.0) if moe is not None else np.ones(1)

    def per_layer(name: str) -> Array:
        of_dense = getattr(dense, name) if dense is not None else 0.0
        of_moe = getattr(moe, name) if moe is not None else 0.0
        return share * of_dense + (1.0 - share) * of_moe

    layer = per_layer("total")
    middle = stages.middle * layer
    last = stages.last * layer + head
    has_head = single | (last > middle)
    layers = np.where(has_head, stages.last, stages.middle)
    paced = np.where(has_head, last, middle) + profile.microbatch_s
    count = at.gas * layers
    # While the pipeline fills and drains, every other stage runs once: the sum of all stages less the paced one.
    free = layer - per_layer("stall")
    others = (shape.num_layers - layers) * free + np.where(has_head, 0.0, head) + (at.pp - 1.0) * profile.microbatch_s
    weights_share = per_layer("linear") / 3.0 / free
    bubble = np.where(single, 0.0, bubble_share(at, weights_share) * others)

    boundary = 2.0 * tokens * shape.hidden_size / at.sigma
    p2p = 2.0 * comm.send_s(asked, comm.group_of(asked, at.tp * at.cp * at.dp, at.pp), boundary)
    # Between chunks the next one computes meanwhile (Megatron's `overlap_p2p_communication`, for interleaving alone).
    steady = at.gas * at.vpp * p2p
    hidden = np.where(at.vpp > 1, profile.pp_hidden * np.minimum(steady, at.gas * paced), 0.0)
    transfers = steady - hidden + (at.pp - 1.0) * p2p
    # What sends hide behind, exchanges over data-parallel ranks cannot.
    left = 1.0 - hidden / (at.gas * paced)

    # Gradients and states are those of the stage that holds the most layers, which need not be the slowest.
    held = np.maximum(stages.middle, stages.last)
    dense_layers = np.where(single, shape.num_dense_layers, 0.0) if shape.num_experts else held
    dense_params, expert_params = stage_params(shape, at, held, dense_layers)
    dense_params = (
        dense_params + np.where(single & (not shape.tie_word_embeddings), 2.0, 1.0) * shape.embedding_params / at.tp
    )
    # A rank of DualPipe holds two stages, and exchanges and updates both.
    met = dense_params + expert_params
    stages_held = np.where(single, 1.0, copies(at))
    dense_params, expert_params = stages_held * dense_params, stages_held * expert_params
    params = dense_params + expert_params
    forward = layers * per_layer("forward") + np.where(has_head, head_forward, 0.0)
    exchange = data_parallel_s(
        asked,
        at,
        layers=held,
        dense=dense_params,
        experts=expert_params,
        forward_s=left * forward,
        backward_s=left * np.maximum(paced - forward, 0.0),
    )

    speed = profile.memory_share * cluster.memory_bytes_per_s
    accumulate = np.where(at.gas > 1, at.gas, 0.0) * (2.0 * profile.grad_bytes + 2.0) * met / speed
    if profile.fuses_accumulation:
        # The products that make the gradients add them up: the traffic runs beside their compute.
        beside = np.minimum(accumulate, count * per_layer("linear") / 3.0)
        accumulate = accumulate - (1.0 - profile.shard_contention) * beside
    shard = np.where(at.zero_stage >= 1, dense_params / at.zero_shards + expert_params / at.expert_zero_shards, params)
    update = profile.optimizer_passes * (34.0 * shard + 8.0 * params) / speed
    even = StepTime(
        linear=count * per_layer("linear"),
        attention=count * per_layer("attention"),
        elementwise=count * per_layer("elementwise"),
        head=np.where(has_head, at.gas * head, 0.0),
        recompute=count * per_layer("recompute"),
        tp=count * per_layer("tp"),
        cp=count * per_layer("cp"),
        ep=count * per_layer("ep"),
        pp=transfers,
        dp=exchange,
        stall=count * per_layer("stall"),
        bubble=bubble,
        optimizer=accumulate + update,
        rest=profile.fixed_step_s + at.gas * profile.microbatch_s,
        stragglers=np.zeros(1),
    )
    return replace(even, stragglers=straggler_share(asked, at) * even.total)


def straggler_share(asked: Question, at: Layouts) -> Array:
    """What waiting for the slowest node adds to a step, as a share of it.

    A step ends when the last rank has. If each node is slow with probability p (a throttled card, a bad link, a busy
    fabric), independently, at least one of the further n - 1 is with 1 - (1-p)^(n-1), and the step takes
    `slow_node_cost` longer. Seen in nanotron's runs, which take 1 to 2 % longer than the same work per accelerator on
    16 nodes, 6 % on 32 and 20 % on 64, whatever the layout, the model and the length of a step.
    """
    nodes = np.maximum(at.num_gpus / asked.cluster.gpus_per_node, 1.0)
    return asked.profile.slow_node_cost * (1.0 - (1.0 - asked.profile.slow_node_chance) ** (nodes - 1.0))
