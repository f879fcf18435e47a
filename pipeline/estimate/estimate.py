"""Memory, step time and throughput of many layouts of one model on one cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.estimate.layouts import Array, Layouts
from pipeline.estimate.memory import Memory, StageMemory, stage_memory
from pipeline.estimate.question import Question
from pipeline.estimate.stages import stage_layers
from pipeline.estimate.step_time import StepTime, step_time


@dataclass(frozen=True)
class Estimate:
    """Predictions, one entry per layout. `fits` compares what must be reserved with the accelerator's memory."""

    stages: StageMemory
    time: StepTime
    mem_bytes: Array
    step_time_s: Array
    tokens_per_s_per_gpu: Array
    mfu: Array
    fits: NDArray[np.bool_]

    @property
    def memory(self) -> Memory:
        """Components on the worse stage."""
        return self.stages.worst


def estimate(asked: Question, at: Layouts) -> Estimate:
    """Predict `at`. Layouts are taken as valid: see `feasible` for those that cannot be launched."""
    stages = stage_layers(asked.shape, at.pp, placement=asked.profile.placement)
    held = stage_memory(asked, at, stages)
    spent = step_time(asked, at, stages)
    total = spent.total
    per_gpu = at.global_batch_tokens(asked.seq_len) / at.num_gpus / total
    return Estimate(
        stages=held,
        mem_bytes=held.total,
        time=spent,
        step_time_s=total,
        tokens_per_s_per_gpu=per_gpu,
        mfu=(asked.shape.flops_per_token(asked.seq_len) / asked.peak_flops) * per_gpu,
        fits=held.reserved <= asked.cluster.memory_bytes - asked.profile.outside_bytes,
    )
