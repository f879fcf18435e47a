"""Runs of a plausible sweep: models x nodes x layouts, their physics, and how they end.

`generate(seed, n)` is deterministic, and run i does not depend on n: a longer sweep begins with the shorter one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweepscope.pipeline.simulate.catalogue import ACCELERATORS, GPT_MODELS, MODELS, MOE_MODELS, ModelShape
from sweepscope.pipeline.simulate.fates import draw_fate, logged_steps
from sweepscope.pipeline.simulate.layouts import Cell, draw_layout
from sweepscope.pipeline.simulate.renderers.protocol import Renderer, with_steps
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import Layout, Noise, SimulatedRun, Tee

GPUS_PER_NODE = 8
BATCH_TOKENS = 2**20  # constant over the sweep, as in the playbook's
FRAMEWORKS: tuple[str, ...] = tuple(RENDERERS)
_NODES = (1, 2, 4, 8, 16, 32, 64)
_EPOCH = datetime(2025, 3, 3, 8, 0, 0)


def generate(
    seed: int, n: int, *, frameworks: Sequence[str] = FRAMEWORKS, noise: bool = True
) -> Iterator[SimulatedRun]:
    """`n` runs, in the order in which they were submitted.

    Args:
        seed: equal seeds give equal runs.
        n: number of runs.
        frameworks: terms of vocab.FRAMEWORK, used in turn.
        noise: disturb about half of the logs (see `noise`).
    """
    names: Counter[str] = Counter()
    for index in range(n):
        rng = random.Random(f"{seed}/{index}")  # noqa: S311 - a simulation, not cryptography
        run = _draw(rng, RENDERERS[frameworks[index % len(frameworks)]], index, noise)
        names[run.path] += 1
        yield run if names[run.path] == 1 else replace(run, name=f"{run.name}_r{names[run.path]}")


def _draw(rng: random.Random, renderer: Renderer, index: int, noise: bool) -> SimulatedRun:
    variant = rng.choice(renderer.variants)
    while True:  # until a cell has a layout that this version of the framework supports
        setup = _setup(rng, renderer, variant, index)
        if setup:
            return _live(rng, renderer, setup, noise)


def _setup(rng: random.Random, renderer: Renderer, variant: str, index: int) -> SimulatedRun | None:
    """A run before it starts: everything but its steps and its end. None when the drawn cell has no valid layout."""
    model, accelerator = _model(rng, renderer.framework, variant), rng.choices(ACCELERATORS, (10, 1, 1))[0]
    num_nodes = rng.choices(_NODES, (6, 5, 5, 4, 3, 2, 1))[0]
    seq_len = 2048 if not model.gated_mlp else rng.choices((4096, 8192), (9, 1))[0]
    interval = rng.choice((1, 5, 10)) if renderer.framework in {"megatron", "torchtitan"} else 1
    started = _EPOCH + timedelta(minutes=2 * index, seconds=rng.randrange(400))
    setup = SimulatedRun(
        name="",
        sweep=f"{model.name.lower()}_{accelerator.name.split('-')[0].lower()}_sl{seq_len}",
        framework=renderer.framework,
        variant=variant,
        job_id=410_000 + index,
        seed=rng.randrange(2**32),
        model=model,
        layout=Layout(dp=num_nodes * GPUS_PER_NODE),
        seq_len=seq_len,
        accelerator=accelerator,
        gpus_per_node=GPUS_PER_NODE,
        num_nodes=num_nodes,
        steps_planned=interval * rng.choice((5, 10, 20)) if interval > 1 else rng.choice((10, 20, 40)),
        log_interval=interval,
        started_at=started,
        ended_at=started,
        status="completed",
    )
    layout = draw_layout(
        rng,
        Cell(model, setup.num_gpus, seq_len, BATCH_TOKENS // seq_len, accelerator),
        zero_stages=renderer.zero_stages,
        accepts=lambda layout: renderer.supports(replace(setup, layout=layout)),
    )
    if layout is None:
        return None
    return replace(setup, layout=layout, name=_run_name(renderer.framework, model, layout, seq_len, num_nodes))


def _model(rng: random.Random, framework: str, variant: str) -> ModelShape:
    if framework == "megatron" and variant == "2021":
        return rng.choice(GPT_MODELS)
    if framework == "megatron" and rng.random() < 0.2:
        return rng.choice(MOE_MODELS)
    return rng.choices(MODELS, (3, 4, 4, 5, 2, 2))[0]


def _run_name(framework: str, model: ModelShape, layout: Layout, seq_len: int, num_nodes: int) -> str:
    """Names as each framework's own sweep scripts give them."""
    a = layout
    if framework == "picotron":  # create_config.py
        return f"dp{a.dp}_tp{a.tp}_pp{a.pp}_cp{a.cp}_mbs{a.mbs}_ga{a.gas}_sl{seq_len}"
    if framework == "nanotron":  # scripts/scaling_benchmarks.py
        mode = "RED" if a.sequence_parallel else "ALL"
        extra = f"_cp{a.cp}" if a.cp > 1 else ""
        extra += "_recompute" if a.recompute == "full" else ""
        return (
            f"{num_nodes}_dp{a.dp}_tp{a.tp}_pp{a.pp}{extra}_acc{a.gas}_mbs{a.mbs}_seq{seq_len}_zero{a.zero_stage}_"
            f"tpmode{mode}_vocab{model.vocab_size // 1000}k"
        )
    if framework == "megatron":
        extra = (f"-ep{a.ep}" if a.ep > 1 else "") + ("" if a.recompute == "none" else f"-{a.recompute}")
        return f"n{num_nodes}-tp{a.tp}-pp{a.pp}-cp{a.cp}{extra}-z{a.zero_stage}-mbs{a.mbs}-gbs{a.gbs}"
    extra = "" if a.recompute == "none" else "-ac"
    return f"n{num_nodes}-tp{a.tp}-pp{a.pp}-cp{a.cp}{extra}-lbs{a.mbs}-gas{a.gas}"


def _live(rng: random.Random, renderer: Renderer, setup: SimulatedRun, noise: bool) -> SimulatedRun:
    status, failure, logged = draw_fate(rng, setup)
    steps = logged_steps(rng, setup, logged + 1)
    done, following = steps[:logged], steps[logged]
    end = done[-1].ts if done else setup.started_at + timedelta(seconds=45)
    if status in {"hang", "timeout"}:
        end += timedelta(minutes=10, seconds=rng.randrange(60))
    elif status not in {"completed", "truncated"}:
        end += timedelta(seconds=rng.uniform(1, 20))
    run = replace(
        setup,
        status=status,
        failure=failure,
        ended_at=end,
        unfinished=following if failure == "mid_line" else None,
        prologue=rng.random() < 0.9,
        stderr_apart=status != "truncated" and noise and rng.random() < 0.1,
        noise=_noise(rng, setup.framework) if noise else Noise(),
    )
    return with_steps(renderer, run, done)


def _noise(rng: random.Random, framework: str) -> Noise:
    tees: tuple[Tee, ...] = ("rank", "none") if framework == "torchtitan" else ("none", "default", "srun")
    quiet = rng.random() < 0.5
    return Noise(
        tee=rng.choice(tees),
        interleaved_ranks=not quiet and rng.random() < 0.5,
        colours=(framework == "torchtitan" or not quiet) and rng.random() < 0.4,
        progress_bars=not quiet and rng.random() < 0.3,
        crlf=not quiet and rng.random() < 0.05,
        duplicate_lines=not quiet and rng.random() < 0.15,
        mojibake=not quiet and rng.random() < 0.15,
    )
