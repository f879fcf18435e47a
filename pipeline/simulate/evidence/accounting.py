"""Slurm's accounting of a sweep, as `sacct -PD -o JobID,JobIDRaw,State,ExitCode,...` prints it (sacct(1))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from sweepscope.pipeline.simulate.evidence.hosts import hosts
from sweepscope.pipeline.simulate.renderers.protocol import cosmetics
from sweepscope.pipeline.simulate.truth import SimulatedRun

_FIELDS = (
    *("JobID", "JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "Elapsed", "NNodes", "NodeList"),
    *("AllocTRES", "MaxRSS", "WorkDir"),
)
_STATES = {
    "completed": ("COMPLETED", "0:0"),
    "timeout": ("TIMEOUT", "0:0"),
    "cancelled": ("CANCELLED by 1004", "0:15"),
    "node_fail": ("NODE_FAIL", "1:0"),
    "host_oom": ("OUT_OF_MEMORY", "0:125"),
    "preempted": ("PREEMPTED", "0:15"),
}
_FAILED = ("FAILED", "1:0")


def sacct(runs: Sequence[SimulatedRun]) -> str:
    """The table of the jobs of `runs`; those whose logs stop without a reason are purged from it."""
    return "\n".join(["|".join(_FIELDS), *(row for run in runs if run.status != "truncated" for row in _rows(run)), ""])


def _rows(run: SimulatedRun) -> Iterator[str]:
    rng = cosmetics(run, "sacct")
    state, code = ("COMPLETED", "0:0") if run.failure == "" else _STATES.get(run.status, _FAILED)
    if run.failure in {"traceback_after", "time_limit_after"}:
        state, code = _FAILED if run.failure == "traceback_after" else _STATES["timeout"]
    start = run.started_at.replace(microsecond=0)
    end = run.ended_at.replace(microsecond=0) + timedelta(seconds=rng.randrange(2, 9))
    submit = start - timedelta(seconds=rng.randrange(20, 900))
    span = end - start
    elapsed = f"{span.days}-" * bool(span.days) + str(timedelta(seconds=span.seconds)).zfill(8)
    nodes = run.num_nodes
    tres = f"billing={96 * nodes},cpu={96 * nodes},gres/gpu={run.num_gpus},mem={960 * nodes}G,node={nodes}"
    shared = [f"{submit:%FT%T}", f"{start:%FT%T}", f"{end:%FT%T}", elapsed, str(nodes), _node_list(hosts(run)), tres]
    job, folder = str(run.job_id), f"/scratch/sweeps/{run.path}"
    yield "|".join([job, job, state, code, *shared, "", folder])
    rss = f"{rng.randrange(30_000_000, 90_000_000)}K"
    step_state = state.split(" ")[0]
    yield "|".join([f"{job}.batch", f"{job}.batch", step_state, code, *shared, rss, ""])


def _node_list(names: Sequence[str]) -> str:
    """Names as Slurm folds them.

    >>> _node_list(["gpu-003", "gpu-004", "gpu-009"]), _node_list(["gpu-003"])
    ('gpu-[003-004,009]', 'gpu-003')
    """
    numbers = sorted(int(re.sub(r"\D", "", name)) for name in names)
    if len(numbers) == 1:
        return f"gpu-{numbers[0]:03d}"
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = (f"{first:03d}" if first == last else f"{first:03d}-{last:03d}" for first, last in spans)
    return f"gpu-[{','.join(texts)}]"
