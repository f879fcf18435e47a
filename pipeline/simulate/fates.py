"""Steps and end of a simulated run."""

from __future__ import annotations

import random
from datetime import timedelta

from sweepscope.pipeline.simulate import physics
from sweepscope.pipeline.simulate.truth import ExactStep, SimulatedRun

# Probabilities of failures that do not depend on the layout; OOM follows from `physics`. Other runs complete.
_ACCIDENTS: tuple[tuple[str, str, float], ...] = (
    ("hang", "watchdog", 0.025),
    ("hang", "watchdog_old", 0.01),
    ("timeout", "time_limit", 0.03),
    ("crash", "assertion", 0.015),
    ("crash", "value", 0.01),
    ("crash", "segfault", 0.005),
    ("nccl_error", "system", 0.02),
    ("truncated", "mid_line", 0.015),
    ("truncated", "line_end", 0.015),
    ("cancelled", "scancel", 0.01),
    ("cancelled", "ctrl_c", 0.01),
    ("cancelled", "sigterm", 0.005),
    ("node_fail", "slurm", 0.01),
    ("host_oom", "slurm", 0.01),
    ("preempted", "slurm", 0.005),
    ("completed", "traceback_after", 0.01),
    ("completed", "time_limit_after", 0.005),
)
_BEFORE_FIRST_STEP = {("crash", "value"): 1.0, ("hang", "watchdog"): 0.4, ("nccl_error", "system"): 0.5}


def draw_fate(rng: random.Random, setup: SimulatedRun) -> tuple[str, str, int]:
    """Status, kind of failure, and number of step lines that are logged before the end."""
    planned = setup.steps_planned // setup.log_interval + (setup.log_interval > 1 and setup.framework == "torchtitan")
    later = rng.randrange(1, planned) if planned > 1 else 0
    predicted = physics.predict(setup.model, setup.layout, setup.seq_len, setup.accelerator, setup.gpus_per_node)
    fill = predicted.mem_allocated_bytes / setup.accelerator.memory_bytes
    if fill > 0.95:  # the rest is lost to fragmentation
        return "oom", _oom_age(setup), 0
    if fill > 0.88 and rng.random() < 0.4:  # fits at first, then fragments
        return "oom", _oom_age(setup), later
    chance = rng.random()
    for status, failure, share in _ACCIDENTS:
        chance -= share
        if chance < 0:
            if status == "completed":
                return status, failure, planned
            early = rng.random() < _BEFORE_FIRST_STEP.get((status, failure), 0.15)
            if failure == "mid_line" or not early:
                return (status, failure, later) if later else ("completed", "", planned)
            return status, failure, 0
    return "completed", "", planned


def _oom_age(setup: SimulatedRun) -> str:
    if setup.framework == "megatron" and setup.variant == "2021":
        return "torch_1_12"
    return "torch_2_0" if setup.variant in {"comma", "2023"} else "torch_2_5"


def logged_steps(rng: random.Random, setup: SimulatedRun, count: int, *, pace: float = 1.0) -> list[ExactStep]:
    """The first `count` logged steps of a run. The first holds compilation and warm-up and is several times slower.

    `pace` is its share of the usual step time.
    """
    predicted = physics.predict(setup.model, setup.layout, setup.seq_len, setup.accelerator, setup.gpus_per_node)
    pace *= predicted.step_time_s * rng.lognormvariate(0, 0.04)
    fragmentation = rng.uniform(0.02, 0.12)
    allocated = int(min(predicted.mem_allocated_bytes, 0.97 * setup.accelerator.memory_bytes)) // 512 * 512
    ts = setup.started_at + timedelta(seconds=30)
    found: list[ExactStep] = []
    before = 0
    for position in range(count):
        step = _step_number(setup, position)
        slow = rng.uniform(4, 12) if position == 0 else 1.0
        step_time_s = pace * slow * rng.lognormvariate(0, 0.012)
        ts += timedelta(seconds=step_time_s * (step - before))
        limit = setup.accelerator.memory_bytes // 2**21 * 2**21
        found.append(
            ExactStep(
                step=step,
                ts=ts,
                step_time_s=step_time_s,
                loss=physics.losses(setup.model.vocab_size, step) + rng.gauss(0, 0.02),
                grad_norm=rng.lognormvariate(0.4, 0.3),
                learning_rate=3e-4 * min(1.0, step / max(2, setup.steps_planned // 5)),
                mem_allocated_bytes=allocated,
                mem_reserved_bytes=min(limit, physics.reserved_bytes(allocated, fragmentation)),
            )
        )
        before = step
    return found


def _step_number(setup: SimulatedRun, position: int) -> int:
    """Megatron logs every n-th step; torchtitan those and step 1."""
    if setup.framework == "torchtitan" and setup.log_interval > 1:
        return max(1, position * setup.log_interval)
    return (position + 1) * setup.log_interval
