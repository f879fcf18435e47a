"""Memory, step time and throughput of many layouts of one model on one cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.factored_grid import Grid, regrid
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory, StageMemory, stage_memory
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.stages import stage_layers
from sweepscope.pipeline.estimate.physics.step_time import StepTime, step_time

_Parts = TypeVar("_Parts", Memory, StepTime)


@dataclass(frozen=True)
class Estimate:
    """Predictions, one entry per layout. `fits` compares what must be reserved with the accelerator's memory.

    The breakdown, `stages` and `time`, is put together when it is asked for.
    """

    mem_bytes: Array
    step_time_s: Array
    tokens_per_s_per_gpu: Array
    mfu: Array
    fits: NDArray[np.bool_]
    breakdown: Callable[[], tuple[StageMemory, StepTime]]

    @cached_property
    def _parts(self) -> tuple[StageMemory, StepTime]:
        return self.breakdown()

    @property
    def stages(self) -> StageMemory:
        """Components of memory on the stages that can be worst."""
        return self._parts[0]

    @property
    def time(self) -> StepTime:
        """What the step is spent on."""
        return self._parts[1]

    @property
    def memory(self) -> Memory:
        """Components on the worse stage."""
        return self.stages.worst


def estimate(asked: Question, at: Layouts) -> Estimate:
    """Predict `at`. `feasible` finds layouts that cannot be launched; here they are taken as valid.

    A long list is computed on the grid of its choices; parts are then added up in another order, which can move the
    last of a figure's 16 digits.
    """
    grid = regrid(at)
    return _compute(asked, at) if grid is None else _listed(_compute(asked, grid.at), grid)


def step_seconds(asked: Question, at: Layouts) -> Array:
    """`step_time_s` of a list of layouts alone: a fit needs no more, thousands of times."""
    return step_time(asked, at, stage_layers(asked.shape, at.pp, placement=asked.profile.placement)).total


def allocated_bytes(asked: Question, at: Layouts) -> Array:
    """`mem_bytes` of a list of layouts alone."""
    return stage_memory(asked, at, stage_layers(asked.shape, at.pp, placement=asked.profile.placement)).total


def _compute(asked: Question, at: Layouts) -> Estimate:
    stages = stage_layers(asked.shape, at.pp, placement=asked.profile.placement)
    memory = stage_memory(asked, at, stages)
    time = step_time(asked, at, stages)
    total = time.total
    per_gpu = at.global_batch_tokens(asked.seq_len) / at.num_gpus / total
    return Estimate(
        mem_bytes=memory.total,
        step_time_s=total,
        tokens_per_s_per_gpu=per_gpu,
        mfu=(asked.shape.flops_per_token(asked.seq_len) / asked.peak_flops) * per_gpu,
        fits=memory.reserved <= asked.cluster.memory_bytes - asked.profile.outside_bytes,
        breakdown=lambda: (memory, time),
    )


def _listed(predicted: Estimate, grid: Grid) -> Estimate:
    """The predictions of the listed layouts out of those of their grid."""

    def each(parts: _Parts) -> _Parts:
        return type(parts)(**{part.name: grid.take(getattr(parts, part.name)) for part in fields(parts)})

    def breakdown() -> tuple[StageMemory, StepTime]:
        return predicted.stages.map(each), each(predicted.time)

    return Estimate(
        mem_bytes=grid.take(predicted.mem_bytes),
        step_time_s=grid.take(predicted.step_time_s),
        tokens_per_s_per_gpu=grid.take(predicted.tokens_per_s_per_gpu),
        mfu=grid.take(predicted.mfu),
        fits=grid.take(predicted.fits),
        breakdown=breakdown,
    )
