"""Evaluations are steps of scripts that print nothing else, and of no other."""

from __future__ import annotations

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import step_of

EVALUATIONS = "".join(f"step {step}: train loss {4 - step / 1000:.4f}, val loss 4.2\n" for step in range(0, 1000, 250))
NANOGPT = "iter 0: loss 4.0863, time 561.94ms, mfu -100.00%\niter 10: loss 3.9863, time 51.94ms, mfu 17.5%\n"


def steps_of(log: str) -> list[int]:
    return extract.extract(lines.split(0, log.encode()), DIALECTS).facts.steps["step"].to_list()


def test_scripts_that_only_evaluate() -> None:
    assert steps_of(EVALUATIONS) == [0, 250, 500, 750]


def test_evaluations_between_steps_are_none() -> None:
    first, *others = EVALUATIONS.splitlines(keepends=True)
    assert steps_of(first + NANOGPT + "".join(others)) == [0, 10]


def test_a_run_that_stopped_behind_its_first_evaluation_has_no_step() -> None:
    assert steps_of(EVALUATIONS.splitlines()[0] + "\ntorch.OutOfMemoryError: CUDA out of memory.\n") == []


def test_other_programs_of_llm_c() -> None:
    step = step_of("nanogpt", "step   12/74: train loss 4.031242 (77.378867 ms, 52934 tok/s)\n")
    assert (step["step"], step["steps_planned"], step["loss"]) == (12, 74, 4.031242)
    assert (step["step_time_s"], step["tokens_per_s"]) == (0.077378867, 52934.0)
    step = step_of("nanogpt", "step 0: train loss 4.677779 (took 1987.546000 ms)\n")
    assert (step["step"], step["loss"], step["step_time_s"]) == (0, 4.677779, 1.987546)
