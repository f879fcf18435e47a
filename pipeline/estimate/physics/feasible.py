"""Why a layout cannot be launched, in one sentence each. The first reason that holds is the one given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.schedule import DUALPIPE, INTERLEAVED, ONE_F_ONE_B, is_dual, is_v_shaped
from sweepscope.pipeline.reference.model_shape import ModelShape

REASONS = (
    "",
    "attention heads are not divisible by tp",
    "key-value heads and tp do not divide each other",
    "feed-forward width is not divisible by tp",
    "more pipeline stages than layers",
    "layers, with or without embedding and head, are not divisible by pp x vpp",
    "interleaving needs at least two stages and gas divisible by pp",
    "experts are not divisible by ep",
    "ep does not divide dp x cp x tp / etp",
    "sequence is not divisible by cp (x tp with sequence parallelism)",
    "expert parallelism without experts",
    "replicas of sharded states do not divide dp x cp",
    "replicas of sharded states do not divide the ranks that hold the same experts",
    "DualPipe needs twice as many micro-batches as stages, and an even number of both where it has two copies",
    "a V-shaped schedule places two chunks on each stage",
)
"""Reason by code; 0 is none."""
REMEDIES = (
    "",
    "lower tp to a divisor of the heads",
    "lower tp to a divisor or multiple of the key-value heads",
    "lower tp to a divisor of the width",
    "lower pp to the layers at most",
    "choose pp x vpp among the divisors of the layers",
    "raise pp, and gas to a multiple of it",
    "lower ep to a divisor of the experts",
    "lower ep, or state etp",
    "lower cp, or turn sequence parallelism off",
    "state num_experts, or leave ep out",
    "choose dp_replicate among the divisors of dp x cp",
    "lower dp_replicate",
    "raise gas, or choose an even pp",
    "leave vpp out, or choose 2",
)
"""What to change, by the same code."""


def _is_odd_for_chunks(shape: ModelShape, at: Layouts) -> NDArray[np.bool_]:
    """Whether chunks differ: layers do not divide, nor do they with embedding and head as one layer each."""
    chunks = at.pp * at.vpp
    odd: NDArray[np.bool_] = (shape.num_layers % chunks != 0) & ((shape.num_layers + 2) % chunks != 0)
    return odd


def reason_codes(
    shape: ModelShape, at: Layouts, seq_len: int, *, even_stages: bool, checks_interleaving: bool = True
) -> NDArray[np.int8]:
    """Index into REASONS for each layout.

    `even_stages`: the framework wants as many layers on every stage. `checks_interleaving`: so must chunks be, and
    micro-batches a multiple of the stages, as Megatron wants.
    """
    is_chunked = (at.vpp > 1) & checks_interleaving
    needs_turns = is_chunked & ((at.schedule == ONE_F_ONE_B) | (at.schedule == INTERLEAVED))
    is_odd = (at.schedule == DUALPIPE) & ((at.pp % 2 != 0) | (at.gas % 2 != 0))
    uneven_dual = is_dual(at) & (at.pp > 1) & (is_odd | (at.gas < 2 * at.pp))
    kv = np.where(shape.kv_lora_rank > 0, at.tp, shape.num_kv_heads)
    split = np.where(at.sequence_parallel > 0, at.tp, 1.0)
    experts = max(shape.num_experts, 1)
    checks = (
        shape.num_heads % at.tp != 0,
        (kv % at.tp != 0) & (at.tp % kv != 0),
        (shape.ffn_hidden_size % at.tp != 0) if shape.ffn_hidden_size else np.False_,
        at.pp * np.where(checks_interleaving, at.vpp, 1.0) > shape.num_layers,
        _is_odd_for_chunks(shape, at) & (even_stages | is_chunked),
        is_chunked & ((at.pp < 2) | (needs_turns & (at.gas % at.pp != 0))),
        experts % np.minimum(at.ep, experts) != 0 if shape.num_experts else np.False_,
        (at.dp * at.cp * at.tp) % (at.ep * np.where(at.ep > 1, at.etp, 1.0)) != 0,
        seq_len % (at.cp * split) != 0,
        (at.ep > 1) & (shape.num_experts == 0),
        (at.dp_replicate % 1 != 0) | (at.zero_shards % 1 != 0),
        (at.dp_replicate > 1) & (at.expert_shards % at.dp_replicate != 0) if shape.num_experts else np.False_,
        uneven_dual,
        checks_interleaving & is_v_shaped(at) & (at.pp > 1) & (at.vpp != 2),
    )
    codes = np.zeros(at.shape, np.int8)
    for code, fails in reversed(list(enumerate(checks, start=1))):
        codes[np.broadcast_to(fails, codes.shape)] = code
    return codes
