"""Simulated runs for tests: one plain run with overrides, and a hypothesis strategy over everything a run can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import strategies as st

from sweepscope.pipeline.simulate.catalogue import ACCELERATORS, GPT_MODELS, MODELS
from sweepscope.pipeline.simulate.failures import TAILS
from sweepscope.pipeline.simulate.generate import generate
from sweepscope.pipeline.simulate.renderers.protocol import with_steps
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import ExactStep, Layout, Noise, SimulatedRun

START = datetime(2026, 3, 2, 8, 0, 0)
GIB = 2**30


def make_exact(step: int = 1, **overrides: object) -> ExactStep:
    """A step of 2 s that ended `step` seconds after START."""
    values: dict[str, object] = {
        "step": step,
        "ts": START + timedelta(seconds=step, microseconds=294_175),
        "step_time_s": 2.0,
        "loss": 11.25 - 0.5 * step,
        "grad_norm": 1.5,
        "learning_rate": 3e-4,
        "mem_allocated_bytes": 40 * GIB,
        "mem_reserved_bytes": 44 * GIB,
        **overrides,
    }
    return ExactStep(**values)  # type: ignore[arg-type]  # overrides are checked by the dataclass' users


def make_run(framework: str, *, exact: list[ExactStep] | None = None, **overrides: object) -> SimulatedRun:
    """A completed Llama-3.1-8B run on two nodes: dp 4, tp 2, pp 2, gas 4, mbs 2; three logged steps of three."""
    values: dict[str, object] = {
        "name": "a_run",
        "sweep": "a_sweep",
        "framework": framework,
        "variant": RENDERERS[framework].variants[-1],
        "job_id": 410_022,
        "seed": 7,
        "model": GPT_MODELS[0] if overrides.get("variant") == "2021" else MODELS[3],
        "layout": Layout(dp=4, tp=2, pp=2, gas=4, mbs=2),
        "seq_len": 4096,
        "accelerator": ACCELERATORS[0],
        "gpus_per_node": 8,
        "num_nodes": 2,
        "steps_planned": 3,
        "log_interval": 1,
        "started_at": START,
        "ended_at": START + timedelta(minutes=5),
        "status": "completed",
        "prologue": False,
        **overrides,
    }
    run = SimulatedRun(**values)  # type: ignore[arg-type]  # as above
    return with_steps(RENDERERS[framework], run, [make_exact(n) for n in (1, 2, 3)] if exact is None else exact)


noises = st.builds(
    Noise,
    tee=st.sampled_from(("none", "default", "rank", "srun")),
    interleaved_ranks=st.booleans(),
    colours=st.booleans(),
    progress_bars=st.booleans(),
    crlf=st.booleans(),
    duplicate_lines=st.booleans(),
    mojibake=st.booleans(),
)

endings = st.sampled_from([(status, failure) for status, ways in TAILS.items() for failure in ways])

_values = st.fixed_dictionaries(
    {
        "step_time_s": st.floats(0.011, 900.0),
        "loss": st.one_of(st.floats(0.01, 20.0), st.just(float("nan"))),
        "grad_norm": st.floats(0.001, 5000.0),
        "learning_rate": st.floats(1e-8, 0.02),
        "mem_allocated_bytes": st.integers(4096, 300 * GIB // 512).map(lambda n: n * 512),
        "mem_reserved_bytes": st.integers(1, 150 * 1024).map(lambda n: n * 2 * 2**20),
    }
)


@st.composite
def runs(draw: st.DrawFn, framework: str) -> SimulatedRun:
    """A run of the framework: a drawn cell and layout, any step values, any ending, any noise."""
    seed = draw(st.integers(0, 2**20))
    base = next(generate(seed, 1, frameworks=(framework,), noise=False))
    status, failure = draw(endings)
    logged = draw(st.integers(1 if failure in {"mid_line", "line_end"} or status == "completed" else 0, 6))
    interval = base.log_interval
    planned = logged * interval if status == "completed" else (logged + draw(st.integers(1, 200))) * interval
    numbers = [interval * (n + 1) for n in range(logged + 1)]
    ts = base.started_at + timedelta(seconds=30)
    exact = []
    for number in numbers:
        ts += timedelta(seconds=draw(st.integers(1, 500)), milliseconds=draw(st.integers(0, 999)))
        exact.append(ExactStep(step=number, ts=ts, **draw(_values)))
    run = replace(
        base,
        steps_planned=planned,
        status=status,
        failure=failure,
        ended_at=ts + timedelta(seconds=5),
        unfinished=exact[-1] if failure == "mid_line" else None,
        prologue=draw(st.booleans()),
        stderr_apart=draw(st.booleans()) and status != "truncated",
        noise=draw(noises),
        seed=draw(st.integers(0, 2**20)),
    )
    return with_steps(RENDERERS[framework], run, exact[:-1])
