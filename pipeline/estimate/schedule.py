"""Pipeline schedules: idle time, and micro-batches whose activations are alive.

All times are in units of one micro-batch on one stage. Sources: AFAB (GPipe, 1811.06965), 1F1B and interleaved
(Narayanan, 2104.04473 sections 2.2.1 and 2.2.2), zero bubble (Qi, 2401.10241), DualPipe (DeepSeek-V3, 2412.19437,
table 2).
"""

from __future__ import annotations

import numpy as np

from pipeline.estimate.layouts import SCHEDULES, Array, Layouts

_AFAB, _1F1B, _INTERLEAVED, _ZERO_BUBBLE, _DUALPIPE = range(len(SCHEDULES))


def bubble_share(at: Layouts) -> Array:
    """Share of one pass through the other stages (forward and backward of a micro-batch) that a step idles.

    1 for AFAB and 1F1B, 1/v interleaved. With the backward twice the forward (B = 2F) and half of it for weights
    (W = F), table 2 of DeepSeek-V3 gives zero bubble (ZB1P) (pp - 1) (F + B - 2W) = (pp - 1) F, a third, and DualPipe
    (pp/2 - 1) (F&B + B - 3W) = (pp/2 - 1) 2F with F&B = F + B: two thirds, of half as many stages.
    """
    dualpipe = 2.0 / 3.0 * np.maximum(at.pp / 2.0 - 1.0, 0.0) / np.maximum(at.pp - 1.0, 1.0)
    return np.where(at.schedule == _ZERO_BUBBLE, 1.0 / 3.0, np.where(at.schedule == _DUALPIPE, dualpipe, 1.0 / at.vpp))


def in_flight(at: Layouts, *, is_first: bool) -> Array:
    """Micro-batches whose activations a stage holds at its fullest, in units of all its layers.

    1F1B: min(pp, m) on the first stage, 1 on the last. AFAB: m everywhere. Interleaved: 1 + (pp-1)/(pp v) times
    1F1B's (Korthikanti section 4.2.3). Zero bubble: as 1F1B. DualPipe: pp + 1 everywhere, beside its two copies of
    the parameters (`copies`).
    """
    afab = at.gas
    if not is_first:
        return np.where(at.schedule == _AFAB, afab, np.where(at.schedule == _DUALPIPE, at.pp, 1.0))
    alive = np.minimum(at.pp, at.gas)
    interleaved = np.where(at.vpp > 1, 1.0 + (at.pp - 1.0) / (at.pp * at.vpp), 1.0)
    one_f_one_b = np.where(at.gas >= at.pp, alive * interleaved, alive)
    dualpipe = np.minimum(at.pp + 1.0, at.gas)
    return np.where(at.schedule == _AFAB, afab, np.where(at.schedule == _DUALPIPE, dualpipe, one_f_one_b))


def copies(at: Layouts) -> Array:
    """Copies of its parameters that a rank holds: two under DualPipe, which runs both directions at once (table 2)."""
    return np.where(at.schedule == _DUALPIPE, 2.0, 1.0)
