"""Repeats of some runs, on two versions of NCCL: what run-to-run noise and a change of version look like."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from sweepscope.pipeline.simulate.fates import logged_steps
from sweepscope.pipeline.simulate.renderers.protocol import with_steps
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import SimulatedRun

VERSIONS = {"2.21.5+cuda12.4": 1.0, "2.27.3+cuda12.9": 0.95}
"""Version of NCCL to its share of the step time of the older one."""
_TIMES = 2
"""Runs on each version."""
MOST = 5
"""Runs that are repeated."""


def repeats(runs: Sequence[SimulatedRun], seed: int) -> Iterator[SimulatedRun]:
    """Runs of the same set-ups as the first completed ones of `runs`, submitted after all of them."""
    last = max((run.job_id for run in runs), default=0)
    begin = max((run.ended_at for run in runs), default=None)
    done = [run for run in runs if run.status == "completed" and not run.failure and 1 < run.num_nodes <= 4][:MOST]
    number = 0
    for run in done:
        for version, share in VERSIONS.items():
            for _ in range(_TIMES):
                number += 1
                rng = random.Random(f"{seed}/repeat/{number}")  # noqa: S311 - a simulation, not cryptography
                started = (begin or run.ended_at).replace(microsecond=0) + timedelta(minutes=7 * number)
                setup = replace(
                    run,
                    name=f"{run.name}_nccl{version.partition('+')[0].replace('.', '')}_r{number}",
                    job_id=last + number,
                    seed=rng.randrange(2**32),
                    started_at=started,
                    nccl_version=version,
                    exact=(),
                    steps=(),
                )
                steps = logged_steps(rng, setup, len(run.exact), pace=share)
                yield with_steps(RENDERERS[run.framework], replace(setup, ended_at=steps[-1].ts), steps)
