"""Seconds of one training step, by what they are spent on.

The parts add up to the step: compute of the slowest stage (`slowest_stage`), communication that compute does not hide,
the pipeline's idle time, the optimizer (`optimizer`). Overlap follows one rule per dimension, its share a constant of
the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from sweepscope.pipeline.estimate.physics import collectives as comm
from sweepscope.pipeline.estimate.physics.compute import head_s, machine
from sweepscope.pipeline.estimate.physics.data_parallel import data_parallel_s
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.optimizer import accumulation_s, held_params, update_s
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.slowest_stage import bubble_s, mean_layer, slowest_stage
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
    """All parts of one step. The slowest stage sets the pace; the rest of the pipeline sets the idle time."""
    shape, profile = asked.shape, asked.profile
    on = machine(asked)
    tokens = at.mbs * asked.seq_len / at.cp
    layer = mean_layer(asked, on, at)
    loss = head_s(on, shape, tokens, at.tp)
    gathered = gathered_logits_s(asked, at, tokens)
    head = replace(loss, forward=loss.forward + gathered)
    slowest = slowest_stage(asked, at, stages, layer, head)
    sends = sends_s(asked, at, tokens, slowest.seconds)
    held = held_params(shape, at, stages)
    # What sends hide behind, exchanges over data-parallel ranks cannot.
    left = 1.0 - sends.hidden / (at.gas * slowest.seconds)
    exchange = data_parallel_s(
        asked,
        at,
        layers=held.layers,
        dense=held.dense,
        experts=held.experts,
        forward_s=left * slowest.forward,
        backward_s=left * np.maximum(slowest.seconds - slowest.forward, 0.0),
    )
    count = at.gas * slowest.layers
    linear = count * layer.seconds("linear")
    even = StepTime(
        linear=linear,
        attention=count * layer.seconds("attention"),
        elementwise=count * layer.seconds("elementwise"),
        head=np.where(slowest.has_head, at.gas * loss.total, 0.0),
        recompute=count * layer.seconds("recompute"),
        tp=count * layer.seconds("tp") + np.where(slowest.has_head, at.gas * gathered, 0.0),
        cp=count * layer.seconds("cp"),
        ep=count * layer.seconds("ep"),
        pp=sends.exposed,
        dp=exchange,
        stall=count * layer.seconds("stall"),
        bubble=bubble_s(asked, at, layer, head, slowest),
        optimizer=accumulation_s(asked, on, at, held, linear) + update_s(asked, on, at, held),
        rest=profile.fixed_step_s + at.gas * profile.microbatch_s,
        stragglers=np.zeros(1),
    )
    return replace(even, stragglers=straggler_share(asked, at) * even.total)


def gathered_logits_s(asked: Question, at: Layouts, tokens: Array) -> Array:
    """Seconds in which the ranks of a tensor group gather a micro-batch's logits in 16 bit, where the trainer does.

    The gradients need no exchange: each rank takes those of its part (picotron, `tp_communications.py:
    GatherFromModelParallelRegion`).
    """
    if not asked.profile.gathers_logits:
        return np.zeros(1)
    group = comm.group_of(asked, np.ones_like(at.tp), at.tp)
    return comm.all_gather_s(asked, group, 2.0 * tokens * asked.shape.vocab_size)


@dataclass(frozen=True)
class Sends:
    """Seconds per step of sends between stages: `exposed` on the critical path, `hidden` behind compute."""

    exposed: Array
    hidden: Array


def sends_s(asked: Question, at: Layouts, tokens: Array, paced: Array) -> Sends:
    """Sends of activations to the next stage and of their gradients back, both for each micro-batch and chunk.

    `tokens` are those of a micro-batch on one rank, `paced` the seconds that the slowest stage takes for it. Between
    chunks the next one computes meanwhile (Megatron's `overlap_p2p_communication`, for interleaving alone); a profile's
    pipeline that `sends_beside` needs no chunks for it.
    """
    p2p = boundary_s(asked, at, 2.0 * tokens * asked.shape.hidden_size)
    steady = at.gas * at.vpp * p2p
    is_beside = (at.vpp > 1) | asked.profile.sends_beside
    hidden = np.where(is_beside, asked.profile.pp_hidden * np.minimum(steady, at.gas * paced), 0.0)
    return Sends(exposed=steady - hidden + (at.pp - 1.0) * p2p, hidden=hidden)


def boundary_s(asked: Question, at: Layouts, tensor: Array) -> Array:
    """Seconds of sending activations of `tensor` bytes to the next stage, and their gradients back.

    Under sequence parallelism each rank of a tensor group has its own part to send. Without, all have the whole: in
    the profile's `cut_sends` of the two directions each sends a part, which the other side gathers over its links
    (2104.04473 section 4.1), else the whole.
    """
    stages = comm.group_of(asked, at.tp * at.cp * at.dp, at.pp)
    spent = 2.0 * comm.send_s(asked, stages, tensor / at.sigma)
    is_cut = (at.tp > 1) & (at.sigma == 1)
    if not asked.profile.cut_sends or not is_cut.any():
        return spent
    gathered = comm.all_gather_s(asked, comm.group_of(asked, np.ones_like(at.tp), at.tp), tensor)
    part = np.minimum(comm.send_s(asked, stages, tensor / at.tp) + gathered, spent / 2.0)
    return np.where(is_cut, spent + asked.profile.cut_sends * (part - spent / 2.0), spent)


def straggler_share(asked: Question, at: Layouts) -> Array:
    """What waiting for the slowest node adds to a step, as a share of it.

    A step ends when the last rank has. If each node is slow with probability p (a throttled card, a bad link, a busy
    fabric), independently, at least one of the further n - 1 is with 1 - (1-p)^(n-1), and the step takes
    `slow_node_cost` longer. Seen in nanotron's runs, which take 1 to 2 % longer than the same work per accelerator on
    16 nodes, 6 % on 32 and 20 % on 64, whatever the layout, the model and the length of a step.
    """
    nodes = np.maximum(at.num_gpus / asked.cluster.gpus_per_node, 1.0)
    return asked.profile.slow_node_cost * (1.0 - (1.0 - asked.profile.slow_node_chance) ** (nodes - 1.0))
