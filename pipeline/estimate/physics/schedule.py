"""Pipeline schedules: idle time, micro-batches whose activations are alive, copies of the parameters.

AFAB (GPipe, 1811.06965); 1F1B and interleaved (Narayanan, 2104.04473 sections 2.2.1 and 2.2.2); ZB-H1 and ZB-V (Qi,
2401.10241 sections 2 and 6), which put off the gradients of weights (W) to fill the bubble; DualPipe (DeepSeek-V3,
2412.19437 table 2), which feeds a pipeline from both ends, and its halved V form (the DualPipe repository's table).
A schedule's devices are the pp ranks: the V forms place two chunks, the first and the last, on the first rank.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import SCHEDULES, Array, Layouts

AFAB, ONE_F_ONE_B, INTERLEAVED, ZB_H1, ZB_V, DUALPIPE, DUALPIPE_V = range(len(SCHEDULES))

V_SHAPED: Final = ("zb-v", "dualpipe-v")
"""Schedules that go down the ranks and up again: two chunks on each."""
KEPT_FOR_WEIGHTS: Final = 32 / 34
"""Share of a layer's activations that the gradients of its weights need: 32 of 34 s b h (2401.10241, table 1)."""


_EVEN: Final = np.full(1, 1.0 / 3.0)
"""F = B = W, which the papers' figures take."""


def is_v_shaped(at: Layouts) -> NDArray[np.bool_]:
    """Whether embedding and head are both on the first rank, which has the first chunk of layers and the last."""
    shaped: NDArray[np.bool_] = (at.schedule == ZB_V) | (at.schedule == DUALPIPE_V)
    return shaped if shaped.any() else np.zeros(1, np.bool_)


def is_dual(at: Layouts) -> NDArray[np.bool_]:
    """Whether forward and backward of two micro-batches run beside each other, each hiding the other's exchanges."""
    return at.schedule >= DUALPIPE


def paired_share(at: Layouts) -> Array:
    """Share of a rank's chunks of micro-batches whose forward pass runs beside the backward pass of another.

    All but those before the first backward pass: 2 (pp - 1) + (v - 1) pp and one more on the first stage
    (Megatron-LM, `core/pipeline_parallel/schedules.py: get_pp_rank_microbatches` under
    `overlap_moe_expert_parallel_comm`). A single micro-batch has no other.
    """
    begun = (at.vpp + 1.0) * at.pp - 1.0
    return np.maximum(1.0 - begun / (at.gas * at.vpp), 0.0)


def bubble_share(at: Layouts, weights_share: Array = _EVEN) -> Array:
    """Share of one pass through the other stages (forward and backward of a micro-batch, T) that a step idles.

    `weights_share` is w = W / T. With F, B and W the times of forward, gradients of inputs and gradients of weights:

    - AFAB, 1F1B: (pp - 1) (F + B + W), so 1; interleaved 1/v.
    - ZB-H1: (pp - 1) (F + B - W), so 1 - 2w (2401.10241 section 2.3; ZB1P of DeepSeek-V3's table 2), over v chunks 1/v.
    - ZB-V: none where F = B = W (section 6). Where W is shorter, what it leaves open: (pp - 1) (F + B - 2W), so 1 - 3w,
      as of ZB-H2, which needs twice the memory. It takes that no optimizer waits for all stages (section 4).
      Both fill with the W of other micro-batches: of fewer than pp, with as many as there are; a single one fills none.
    - DualPipe: (pp/2 - 1) (F&B + (B + W) - 3W) with F&B = T and F = B, so (3 - 5w)/2 of half as many stages.
    - DualPipe in V form: (pp - 1) times the same of chunks half as large.
    """
    filled = np.clip((at.gas - 1.0) / np.maximum(at.pp - 1.0, 1.0), 0.0, 1.0)
    share_of: dict[int, Array] = {
        INTERLEAVED: 1.0 / at.vpp,
        ZB_H1: (1.0 - (1.0 + filled) * weights_share) / at.vpp,
        ZB_V: np.maximum(1.0 - (1.0 + 2.0 * filled) * weights_share, 0.0),
    }
    dual = (3.0 - 5.0 * weights_share) / 2.0
    share_of[DUALPIPE] = dual * np.maximum(at.pp / 2.0 - 1.0, 0.0) / np.maximum(at.pp - 1.0, 1.0)
    share_of[DUALPIPE_V] = dual / 2.0
    # A list without a schedule in its column may still have chunks: those are interleaved.
    share: Array = np.where(at.schedule <= ONE_F_ONE_B, 1.0 / at.vpp, 1.0)
    for code, of_schedule in share_of.items():
        if (at.schedule == code).any():
            share = np.where(at.schedule == code, of_schedule, share)
    return share


def in_flight(at: Layouts, *, stage: int) -> Array:
    """Micro-batches whose activations a stage holds at its fullest, in units of all its layers.

    1F1B: stage r holds pp - r, the last one 1. Interleaved over v chunks, it has begun 2 (pp - r - 1) + (v - 1) pp of
    them before the first backward pass, and one more meets it (Megatron-LM's `num_warmup_microbatches`,
    `megatron/core/pipeline_parallel/schedules.py`): 1 + (pp-1)/(pp v) times 1F1B's on the first stage (Korthikanti
    section 4.2.3), but also pp - (pp-1)/v on the last. AFAB holds all m on each; none ever holds more. ZB-H1's last
    stage keeps `KEPT_FOR_WEIGHTS` of pp - 1 beside its own, since it waits longest with its gradients of weights
    (2401.10241 section 2.3); ZB-V pp on all; DualPipe pp + 1 on all, in V form half a stage more than pp.

    Args:
        at: the layouts.
        stage: 0 the first, 1 the one after it (where there are two, the last), -1 the last.
    """
    alive = np.minimum(at.pp, at.gas)
    behind = at.pp - 1.0 if stage < 0 else np.minimum(float(stage), at.pp - 1.0)
    most = np.minimum(at.pp - behind, at.gas)
    is_chunked = (at.vpp > 1) & (at.schedule <= ZB_H1) & (at.gas >= at.pp)
    if is_chunked.any():
        begun = (2.0 * (at.pp - behind) - 1.0 + (at.vpp - 1.0) * at.pp) / at.vpp
        most = np.where(is_chunked, np.minimum(begun, at.gas), most)
    held_by = {
        AFAB: at.gas,
        ZB_H1: most if stage >= 0 else np.maximum(most, 1.0 + (alive - 1.0) * KEPT_FOR_WEIGHTS),
        ZB_V: alive,
        DUALPIPE: np.minimum(at.pp + 1.0, at.gas),
        DUALPIPE_V: np.minimum(at.pp + 0.5, at.gas),
    }
    for code, of_schedule in held_by.items():
        if (at.schedule == code).any():
            most = np.where(at.schedule == code, of_schedule, most)
    return most


def copies(at: Layouts) -> Array:
    """Copies of its parameters that a rank holds: two under DualPipe, which runs both directions at once (table 2)."""
    twice = at.schedule == DUALPIPE
    return np.where(twice, 2.0, 1.0) if twice.any() else np.ones(1)
