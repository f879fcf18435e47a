"""The drawn sweep is plausible: layouts fit the model and the machine, and OOM follows from memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from sweepscope.pipeline.simulate import physics
from sweepscope.pipeline.simulate.catalogue import ACCELERATORS, MODELS
from sweepscope.pipeline.simulate.failures import TAILS
from sweepscope.pipeline.simulate.generate import FRAMEWORKS, generate
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import Layout, Noise, SimulatedRun
from sweepscope.schemas.vocab import STATUS


@pytest.fixture(scope="module")
def sweep() -> list[SimulatedRun]:
    return list(generate(seed=5, n=1200))


def test_equal_seeds_give_equal_runs_and_a_longer_sweep_begins_with_the_shorter() -> None:
    assert list(generate(11, 12)) == list(generate(11, 20))[:12]


def test_another_seed_gives_another_sweep() -> None:
    assert list(generate(1, 5)) != list(generate(2, 5))


def test_layouts_use_every_gpu_and_hold_the_batch(sweep: list[SimulatedRun]) -> None:
    for run in sweep:
        assert run.num_gpus == run.num_nodes * run.gpus_per_node
        assert run.gbs_tokens == 2**20
        assert run.model.num_heads % run.layout.tp == 0
        assert run.model.num_layers % run.layout.pp == 0
        assert run.layout.dp % run.layout.ep == 0
        assert RENDERERS[run.framework].supports(run)


def test_paths_are_unique(sweep: list[SimulatedRun]) -> None:
    assert max(Counter(run.path for run in sweep).values()) == 1


def test_every_framework_age_and_ending_occurs(sweep: list[SimulatedRun]) -> None:
    assert {(run.framework, run.variant) for run in sweep} == {
        (r.framework, v) for r in RENDERERS.values() for v in r.variants
    }
    assert {(run.status, run.failure) for run in sweep} == {(s, f) for s, ways in TAILS.items() for f in ways}
    assert {run.status for run in sweep} <= set(STATUS)


def test_a_run_that_cannot_fit_runs_out_of_memory_before_its_first_step(sweep: list[SimulatedRun]) -> None:
    too_big = [
        run
        for run in sweep
        if physics.memory_bytes(run.model, run.layout, run.seq_len) > 0.95 * run.accelerator.memory_bytes
    ]
    assert too_big
    assert {(run.status, len(run.steps)) for run in too_big} == {("oom", 0)}


def test_only_completed_runs_reach_their_last_step(sweep: list[SimulatedRun]) -> None:
    for run in sweep:
        last = run.steps[-1].step if run.steps else 0
        assert (last == run.steps_planned) == (run.status == "completed"), run.path


def test_most_runs_complete_and_the_first_step_is_the_slowest(sweep: list[SimulatedRun]) -> None:
    completed = [run for run in sweep if run.status == "completed"]
    assert 0.5 < len(completed) / len(sweep) < 0.85
    for run in completed:
        times = [step.step_time_s for step in run.exact]
        assert times[0] == max(times)


def test_printed_throughput_stays_below_the_peak(sweep: list[SimulatedRun]) -> None:
    for run in sweep:
        assert all((step.tflops_per_gpu_logged or 0) < run.accelerator.peak_tflops for step in run.steps)


def test_without_noise_every_log_is_plain() -> None:
    for run in generate(3, 40, noise=False):
        assert run.noise == Noise()
        assert not run.stderr_apart


def test_one_framework_can_be_drawn_alone() -> None:
    assert {run.framework for run in generate(3, 8, frameworks=("megatron",))} == {"megatron"}
    assert {run.framework for run in generate(3, 8)} == set(FRAMEWORKS)


_BASE = Layout(dp=8, gas=16, mbs=2)
_MODEL, _GPU = MODELS[3], ACCELERATORS[0]


@pytest.mark.parametrize(
    "leaner",
    [
        replace(_BASE, zero_stage=1),
        replace(_BASE, recompute="full"),
        replace(_BASE, mbs=1, gas=32),
        Layout(dp=4, tp=2, gas=32, mbs=2),
        Layout(dp=4, cp=2, gas=32, mbs=2),
    ],
)
def test_memory_falls_with_what_is_meant_to_save_it(leaner: Layout) -> None:
    assert physics.memory_bytes(_MODEL, leaner, 4096) < physics.memory_bytes(_MODEL, _BASE, 4096)


def test_recomputation_and_a_pipeline_bubble_cost_time() -> None:
    def time(layout: Layout) -> float:
        return physics.predict(_MODEL, layout, 4096, _GPU, 8).step_time_s

    assert time(replace(_BASE, recompute="full")) > 1.2 * time(_BASE)
    assert time(Layout(dp=2, pp=4, gas=4, mbs=32)) > time(Layout(dp=2, pp=4, gas=64, mbs=2))
