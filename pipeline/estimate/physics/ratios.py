"""The ratios that decide between dimensions: what communicates, what of it shows, and when another layout pays.

All follow from one estimate. A ratio without a denominator (no exchange of that kind) is NaN, NULL in tables. Sources:
the lecture notes and the heuristics of `data/rules/rules.toml`, which ask these questions; their formulas as corrected
in docs/estimator.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from sweepscope.pipeline.estimate.physics.estimate import Estimate
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts, sum_parts
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.stages import stage_layers
from sweepscope.pipeline.estimate.physics.step_time import StepTime, step_time
from sweepscope.pipeline.estimate.physics.volumes import sent_bytes

DIMENSIONS = ("tp", "cp", "ep", "dp", "pp")
"""Dimensions that communicate, by the names of their parts of a step."""
COMPUTE = ("linear", "attention", "elementwise", "head", "recompute")
"""Parts of a step in which the device computes on a micro-batch."""


@dataclass(frozen=True)
class Communication:
    """Seconds per step that each dimension communicates, whether compute hides it or not.

    What full recomputation repeats stands in its own part of the step.
    """

    tp: Array
    cp: Array
    ep: Array
    dp: Array
    pp: Array

    @property
    def total(self) -> Array:
        """Seconds of all dimensions."""
        return sum_parts([getattr(self, part.name) for part in fields(self)])


@dataclass(frozen=True)
class Ratios:
    """Ratios of layouts, one entry per layout; see `ratios` for what each is."""

    rho_tp: Array
    compute_per_comm: Array
    flops_per_comm_byte: Array
    bubble_fraction: Array
    dp_per_pass: Array
    pp_break_even_gas: Array
    mfu_overlapped: Array


def communication(asked: Question, at: Layouts) -> Communication:
    """What each dimension would add to the step if nothing ran beside anything else: the same step without overlap."""
    apart = replace(asked.profile, tp_hidden=0.0, cp_hidden=0.0, dp_hidden=0.0, pp_hidden=0.0, shard_contention=1.0)
    serial = step_time(
        replace(asked, profile=apart), at, stage_layers(asked.shape, at.pp, placement=asked.profile.placement)
    )
    return Communication(**{name: getattr(serial, name) for name in DIMENSIONS})


def compute_s(time: StepTime) -> Array:
    """Seconds of a step in which the pacing stage computes: products, attention, elementwise work, head, and what is
    recomputed."""
    return sum_parts([getattr(time, name) for name in COMPUTE])


def backward_s(time: StepTime) -> Array:
    """Seconds of the backward pass in that: twice the forward pass (F_bwd = 2 F_fwd), and what is recomputed in it."""
    return 2.0 / 3.0 * (compute_s(time) - time.recompute) + time.recompute


def _over(value: Array, divisor: Array) -> Array:
    """`value` / `divisor`, NaN where there is nothing to divide by."""
    value, divisor = np.broadcast_arrays(value, divisor)
    found: Array = np.divide(value, divisor, out=np.full(value.shape, np.nan), where=divisor > 0)
    return found


def ratios(asked: Question, at: Layouts, predicted: Estimate, comm: Communication) -> Ratios:
    """The ratios of `predicted`, the estimate of `at`, whose exchanges take `comm`.

    - rho_tp: compute over the exchange of tensor parallelism (notes, section 4.2). Near 1 and below, TP communicates as
      long as it computes.
    - compute_per_comm: compute over communication of all dimensions, hidden or not. The heuristics ask for
      more than 10.
    - flops_per_comm_byte: arithmetic intensity, the model's FLOPs per accelerator over the bytes that it sends (notes,
      section 5.3). It falls with accelerators at a fixed batch.
    - bubble_fraction: share of the step that the pacing stage waits for the pipeline to fill and drain.
    - dp_per_pass: the data-parallel exchange over the passes that could hide it (notes, section 4.2: saturated where
      T_comm > T_backward). Once a step that is the last micro-batch's backward pass; ZeRO-2 without a pipeline reduces
      under every one, and ZeRO-3 gathers under every forward pass too. Above 1 it cannot be hidden.
    - pp_break_even_gas: micro-batches from which twice as many pipeline stages idle less than the exchange of data
      parallelism now exposes. At a constant batch dp halves and micro-batches double, so the bubble grows from
      (pp-1)/m to (2pp-1)/2m of the compute C, by C/2m (notes, section 4.2: (PP-1)/m T_compute < T_excess).
    - mfu_overlapped: MFU if overlap were perfect: each dimension's exchange beside compute and beside the others, so
      that only what outlasts all compute shows. Notes, section 6.3: the true MFU is below it.
    """
    time, shape = predicted.time, asked.shape
    compute, step = compute_s(time), predicted.step_time_s
    tokens = at.global_batch_tokens(asked.seq_len) / at.num_gpus
    flops = shape.flops_per_token(asked.seq_len) * tokens
    exposed = sum_parts([getattr(time, name) for name in DIMENSIONS])
    longest = np.maximum.reduce(np.broadcast_arrays(*(getattr(comm, name) for name in DIMENSIONS)))
    hidden_step = step - exposed + np.clip(longest - compute, 0.0, exposed)
    once = backward_s(time) / at.gas
    each = (at.zero_stage >= 2) & (at.pp == 1)
    window = np.where(at.zero_stage >= 3, compute, np.where(each, backward_s(time), once))
    break_even = np.ceil(_over(compute, 2.0 * time.dp))
    return Ratios(
        rho_tp=_over(compute, comm.tp),
        compute_per_comm=_over(compute, comm.total),
        flops_per_comm_byte=_over(flops, sent_bytes(asked, at).total),
        bubble_fraction=time.bubble / step,
        dp_per_pass=np.where(comm.dp > 0, _over(comm.dp, window), np.nan),
        pp_break_even_gas=np.maximum(break_even, 1.0),
        mfu_overlapped=predicted.mfu * step / hidden_step,
    )
