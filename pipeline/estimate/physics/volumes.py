"""Bytes that an accelerator sends per step, by the dimension of the layout that makes it: the mean over its stages.

Volumes of rings, whatever algorithm runs: an all-reduce sends 2 (n-1)/n of its tensor, a gather or scatter (n-1)/n.
Switches that reduce (NVLS) send less, so these are upper bounds there. What recomputation repeats is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from sweepscope.pipeline.estimate.physics.data_parallel import reduces_whole
from sweepscope.pipeline.estimate.physics.layer_time import experts_gathered
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.memory import stage_params
from sweepscope.pipeline.estimate.physics.question import Question


@dataclass(frozen=True)
class Volumes:
    """Bytes per accelerator and step, in the mean; `total` is their sum."""

    tp: Array
    cp: Array
    ep: Array
    dp: Array
    pp: Array

    @property
    def total(self) -> Array:
        """Bytes that an accelerator sends per step."""
        return sum_parts([getattr(self, part.name) for part in fields(self)])


def _ring(size: Array) -> Array:
    """(n-1)/n: the share of a tensor that each of n ranks sends to gather or scatter it."""
    return (size - 1.0) / size


def sent_bytes(asked: Question, at: Layouts) -> Volumes:
    """Volumes of each dimension.

    TP: two reductions per layer and pass of M = 2 b s h / cp bytes, 4 L/pp 2 (tp-1)/tp M per micro-batch, half as much
    again under full recomputation (Korthikanti, 2205.05198 section 4.2). CP: keys and values of the other ranks, and
    backward their gradients too. EP: four exchanges of a copy per expert. PP: a boundary each way for every chunk, sent
    whole or in parts that the other side gathers.
    """
    shape, profile = asked.shape, asked.profile
    tokens = at.mbs * asked.seq_len / at.cp
    layers = shape.num_layers / at.pp
    moe = layers * shape.num_moe_layers / shape.num_layers
    passes = np.where(at.recompute >= 2, 3.0, 2.0)
    reductions = 2.0 * (layers - moe) + (1.0 + experts_gathered(shape, at)) * moe
    tensor = 2.0 * tokens * shape.hidden_size
    width = (2 * shape.kv_width or shape.query_width + shape.value_width) / at.tp
    copies = shape.experts_per_token * tokens * shape.hidden_size / at.sigma
    boundary = tensor / at.sigma
    return Volumes(
        tp=at.gas * passes * reductions * 2.0 * _ring(at.tp) * tensor,
        cp=at.gas * layers * 3.0 * (at.cp - 1.0) * tokens * width * 2.0,
        ep=at.gas * moe * 2.0 * passes * _ring(at.ep) * profile.dispatch_bytes * copies,
        dp=_data_parallel(asked, at, layers, layers - moe),
        pp=at.gas * 2.0 * (at.pp * at.vpp - 1.0) / at.pp * boundary * (at.pp > 1),
    )


def _data_parallel(asked: Question, at: Layouts, layers: Array, dense_layers: Array) -> Array:
    """What data-parallel ranks exchange of the parameters that they hold, as `data_parallel` has it."""
    dense, experts = stage_params(asked.shape, at, layers, dense_layers)
    matrices = 1.0 if asked.shape.tie_word_embeddings else 2.0
    dense = dense + matrices * asked.shape.embedding_params / at.tp / at.pp
    everyone = _exchanged(asked, at, dense, at.batch_shards)
    return everyone + (_exchanged(asked, at, experts, at.expert_shards) if asked.shape.num_experts else 0.0)


def _exchanged(asked: Question, at: Layouts, params: Array, ranks: Array) -> Array:
    """Bytes of `params` parameters over `ranks` ranks: the stages of ZeRO (1910.02054 section 7), replicas beside it.

    ZeRO-3 gathers weights twice and scatters gradients of their width per micro-batch: 6 bytes of 16-bit parameters.
    """
    grads, weights = asked.profile.grad_bytes * params, asked.profile.weight_bytes * params
    shards = np.maximum(ranks / at.dp_replicate, 1.0)
    each = np.where(at.pp == 1, at.gas, 1.0)
    each = np.where(reduces_whole(asked, at), 2.0, each)
    sharded = _ring(shards) * np.where(
        at.zero_stage >= 3,
        (2.0 * at.gas + each) * weights,
        weights + np.where((at.zero_stage >= 2) | reduces_whole(asked, at), each, 1.0) * grads,
    )
    between = 2.0 * _ring(np.maximum(ranks / shards, 1.0)) * grads / shards
    return np.where(at.zero_stage >= 1, sharded + between, 2.0 * _ring(ranks) * grads)
