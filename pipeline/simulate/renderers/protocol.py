"""The shape of a dialect's renderer, and what all of them share."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sweepscope.pipeline.simulate.console import LogLine
from sweepscope.pipeline.simulate.truth import ExactStep, SimulatedRun, SimulatedStep

Stated = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Renderer:
    """One framework's way of writing a run directory.

    Attributes:
        framework: word of vocab.FRAMEWORK.
        variants: ages of the dialect, oldest first.
        zero_stages: stages that it supports on more than one data-parallel rank.
        supports: whether this variant existed with the run's model and layout.
        printed_step: the values that the step line will show.
        printed_peaks: peak (allocated, reserved) bytes as the log will show them, None where it does not.
        stated: columns of `runs` that the files say outright, with their values.
        body: lines of the workers from start to the last logged step; `completed` adds the end of a finished run.
        log_name: name of the log file.
        script: the training script, as launchers name it in failures.
        sidecars: other files of the directory by name.
    """

    framework: str
    variants: tuple[str, ...]
    zero_stages: tuple[int, ...]
    supports: Callable[[SimulatedRun], bool]
    printed_step: Callable[[SimulatedRun, ExactStep], SimulatedStep]
    printed_peaks: Callable[[SimulatedRun, Sequence[ExactStep]], tuple[int | None, int | None]]
    stated: Callable[[SimulatedRun], Stated]
    body: Callable[[SimulatedRun], list[LogLine]]
    log_name: Callable[[SimulatedRun], str]
    script: str
    sidecars: Callable[[SimulatedRun], Mapping[str, str]] = lambda _run: {}


def cosmetics(run: SimulatedRun, purpose: str) -> random.Random:
    """Random numbers for what carries no meaning; the same for a run and purpose every time."""
    return random.Random(f"{run.seed}/{run.framework}/{purpose}")  # noqa: S311 - decoration, not cryptography


def with_steps(renderer: Renderer, run: SimulatedRun, exact: Sequence[ExactStep]) -> SimulatedRun:
    """`run` with these steps, and what the dialect will print of them, as its truth."""
    allocated, reserved = renderer.printed_peaks(run, exact)
    return replace(
        run,
        exact=tuple(exact),
        steps=tuple(renderer.printed_step(run, step) for step in exact),
        mem_peak_allocated_bytes=allocated,
        mem_peak_reserved_bytes=reserved,
    )


def batch_layout_columns(run: SimulatedRun) -> dict[str, str | int | bool]:
    """The layout and batch columns that every dialect states one way or the other."""
    layout = run.layout
    return {
        "dp": layout.dp,
        "tp": layout.tp,
        "pp": layout.pp,
        "mbs": layout.mbs,
        "gas": layout.gas,
        "seq_len": run.seq_len,
        "steps_planned": run.steps_planned,
    }
