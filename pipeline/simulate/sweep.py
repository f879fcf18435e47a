"""Directories of a simulated sweep: runs, their ground truth, and the marker."""

from __future__ import annotations

import calendar
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.simulate.evidence.repeats import repeats
from sweepscope.pipeline.simulate.evidence.write import write_evidence
from sweepscope.pipeline.simulate.generate import FRAMEWORKS, generate
from sweepscope.pipeline.simulate.marker import MARKER_NAME, TRUTH_NAME
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS, stated
from sweepscope.pipeline.simulate.truth import SimulatedRun, SimulatedStep


def write_sweep(
    directory: Path | str,
    *,
    runs: int,
    seed: int,
    frameworks: Sequence[str] = FRAMEWORKS,
    noise: bool = True,
    evidence: bool = False,
) -> Path:
    """Write `runs` run directories as `<framework>/<sweep>/<run>/` below `directory`; return its path.

    With `evidence`, some runs are repeated on two versions of NCCL, and some have NCCL's output, dumps of the flight
    recorder, a memory snapshot and samples of their GPUs beside their logs; the sweep has nccl-tests and `sacct`.

    Deterministic: equal arguments give byte-identical files with equal modification times (the end of the run, so that
    no simulated run looks as if it were still being written).

    Raises:
        UsageError: `directory` is a file or holds something, `runs` is below 1, or a framework is unknown.
    """
    unknown = sorted(set(frameworks) - set(RENDERERS))
    if unknown or not frameworks:
        raise UsageError(f"cannot simulate {', '.join(unknown) or 'no framework'}: choose from {', '.join(FRAMEWORKS)}")
    if runs < 1:
        raise UsageError(f"cannot simulate {runs} runs: give a number of at least 1")
    root = Path(directory)
    _claim(root)
    marker = {
        "simulator": "sweepscope simulate",
        "seed": seed,
        "runs": runs,
        "frameworks": list(frameworks),
        "noise": noise,
        "evidence": evidence,
    }
    # First, so that an interrupted call leaves a marked directory.
    (root / MARKER_NAME).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
    found = generate(seed, runs, frameworks=frameworks, noise=noise)
    written: list[SimulatedRun] = []
    with (root / TRUTH_NAME).open("w", encoding="utf-8") as truth:
        for run in _with_repeats(found, seed) if evidence else found:
            written += [run] if evidence else []
            log = write_run(root, run)
            truth.write(json.dumps(truth_of(run, log), ensure_ascii=False) + "\n")
    if evidence:
        write_evidence(root, written, seed)
    return root


def _with_repeats(runs: Iterable[SimulatedRun], seed: int) -> Iterator[SimulatedRun]:
    drawn = list(runs)
    yield from drawn
    yield from repeats(drawn, seed)


def _claim(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file: give a directory to write the simulated sweep into")
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty: give a new directory, nothing is overwritten")
    directory.mkdir(parents=True, exist_ok=True)


def write_run(root: Path, run: SimulatedRun) -> str:
    """Write one run's files; returns the log's path below `root`."""
    directory = root / run.path
    directory.mkdir(parents=True)
    ended = calendar.timegm(run.ended_at.timetuple())
    for name, data in render(run).items():
        path = directory / name
        path.write_bytes(data)
        os.utime(path, (ended, ended))
    return f"{run.path}/{RENDERERS[run.framework].log_name(run)}"


def truth_of(run: SimulatedRun, log: str) -> dict[str, object]:
    """Ground truth of one run, for JSON: values in its files (`stated`, `steps` by column) and others."""
    last = run.steps[-1] if run.steps else None
    return {
        "log": log,
        "run_dir": run.path,
        "sweep": run.sweep,
        "framework": run.framework,
        "variant": run.variant,
        "job_id": str(run.job_id),
        "status": run.status,
        "failure": run.failure,
        "started_at": run.started_at.isoformat(),
        "ended_at": run.ended_at.isoformat(timespec="seconds"),
        "model": run.model.name,
        "params": run.model.params,
        "layout": asdict(run.layout),
        "gbs": run.layout.gbs,
        "seq_len": run.seq_len,
        "accelerator": run.accelerator.name,
        "num_nodes": run.num_nodes,
        "gpus_per_node": run.gpus_per_node,
        "num_gpus": run.num_gpus,
        "steps_planned": run.steps_planned,
        "steps_logged": len(run.steps),
        "first_step": run.steps[0].step if run.steps else None,
        "last_step": last.step if last else None,
        "last_loss": _plain(last.loss) if last else None,
        "mem_peak_allocated_bytes": run.mem_peak_allocated_bytes,
        "mem_peak_reserved_bytes": run.mem_peak_reserved_bytes,
        "noise": asdict(run.noise) | {"prologue": run.prologue, "stderr_apart": run.stderr_apart},
        "stated": dict(stated(run)),
        "steps": {
            field.name: [_plain(getattr(step, field.name)) for step in run.steps] for field in fields(SimulatedStep)
        },
    }


def _plain(value: object) -> object:
    """The value as JSON has it: times as text, NaN as null."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
