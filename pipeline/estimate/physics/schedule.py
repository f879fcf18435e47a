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


def in_flight(at: Layouts, *, is_first: bool) -> Array:
    """Micro-batches whose activations a stage holds at its fullest, in units of all its layers.

    With p = min(pp, m), first stage / last: 1F1B p / 1; AFAB m / m; interleaved 1 + (pp-1)/(pp v) times 1F1B's, but
    never more than the m there are (Korthikanti section 4.2.3); ZB-H1 p / 1 + (p - 1) `KEPT_FOR_WEIGHTS`, since the
    last stage waits longest with its gradients of weights (2401.10241 section 2.3); ZB-V p on all; DualPipe pp + 1 on
    all, in V form half a stage more than pp.
    """
    alive = np.minimum(at.pp, at.gas)
    is_chunked = (at.vpp > 1) & (at.schedule <= ZB_H1)
    interleaved = np.where(is_chunked & (at.gas >= at.pp), 1.0 + (at.pp - 1.0) / (at.pp * at.vpp), 1.0)
    first = np.minimum(alive * interleaved, at.gas)
    held_by = {
        AFAB: at.gas,
        ZB_H1: first if is_first else 1.0 + (alive - 1.0) * KEPT_FOR_WEIGHTS,
        ZB_V: alive,
        DUALPIPE: np.minimum(at.pp + 1.0, at.gas),
        DUALPIPE_V: np.minimum(at.pp + 0.5, at.gas),
    }
    most = first if is_first else np.ones(1)
    for code, of_schedule in held_by.items():
        if (at.schedule == code).any():
            most = np.where(at.schedule == code, of_schedule, most)
    return most


def copies(at: Layouts) -> Array:
    """Copies of its parameters that a rank holds: two under DualPipe, which runs both directions at once (table 2)."""
    twice = at.schedule == DUALPIPE
    return np.where(twice, 2.0, 1.0) if twice.any() else np.ones(1)
