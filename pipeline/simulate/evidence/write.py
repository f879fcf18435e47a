"""Which runs of a simulated sweep have which files beside their logs, written with the truth about them."""

from __future__ import annotations

import calendar
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

from sweepscope.pipeline.simulate.catalogue import ACCELERATORS
from sweepscope.pipeline.simulate.evidence import (
    accounting,
    flight_recorder,
    gpu_samples,
    last_words,
    nccl_init,
    nccl_tests,
    snapshot,
)
from sweepscope.pipeline.simulate.marker import EVIDENCE_TRUTH_NAME
from sweepscope.pipeline.simulate.truth import SimulatedRun

_SAMPLED, _DEBUGGED = 12, 4
"""Runs with samples of their GPUs, and with NCCL's output."""
_RANKS = 32
"""Most ranks of a run with a file per rank: each is small, and they are many."""
_NODES = (1, 2, 4)


def write_evidence(root: Path, runs: Sequence[SimulatedRun], seed: int) -> None:
    """Write the files below `root`. Equal runs and seeds give equal bytes."""
    truth: dict[str, dict[str, object]] = {}
    small = [run for run in runs if run.num_gpus <= _RANKS]
    completed = [run for run in runs if run.status == "completed"]
    for number, run in enumerate([run for run in small if run.num_nodes > 1 and run.status == "completed"][:_DEBUGGED]):
        version, is_on_sockets = "2.27.3+cuda12.9", number == _DEBUGGED - 1
        text = nccl_init.debug_output(run, version, is_on_sockets=is_on_sockets)
        _write(root, run, f"nccl.{run.job_id}", text.encode())
        truth[f"{run.path}/nccl"] = {"ranks": run.num_gpus, "transport": "NET/Socket" if is_on_sockets else "NET/IB"}
    hung = [(run, hang) for run in small if run.status == "hang" and (hang := last_words.hang_of(run))]
    for run, hang in hung[:1]:
        others = [rank for rank in range(run.num_gpus) if rank not in hang.ranks]
        late = random.Random(f"{seed}/late").choice(others)  # noqa: S311 - a simulation, not cryptography
        for name, data in flight_recorder.dumps(run, hang, late).items():
            _write(root, run, name, data)
        truth[f"{run.path}/flight recorder"] = {"late_rank": late, "ranks": run.num_gpus, "seq": hang.seq}
    full = [(run, asked) for run in runs if run.status == "oom" and (asked := last_words.asked_bytes(run))]
    for run, asked in full[:1]:
        _write(root, run, "memory_snapshot_rank0_oom.pickle", snapshot.oom_snapshot(run, asked))
        truth[f"{run.path}/snapshot"] = {"asked_bytes": asked}
    for run in completed[:_SAMPLED]:
        _write(root, run, "nvidia-smi.csv", gpu_samples.samples(run).encode())
        truth[f"{run.path}/samples"] = {"gpus": run.gpus_per_node}
    tests = root / "nccl-tests"
    for nodes in _NODES:
        for operation in nccl_tests.OPERATIONS:
            rng = random.Random(f"{seed}/{operation}/{nodes}")  # noqa: S311 - a simulation, not cryptography
            path = tests / f"{operation}_n{nodes}.out"
            path.parent.mkdir(exist_ok=True)
            _save(path, nccl_tests.table(operation, nodes, ACCELERATORS[0], rng).encode(), runs[-1])
    _save(root / "sacct.txt", accounting.sacct(runs).encode(), runs[-1])
    truth["sacct"] = {"jobs": sum(run.status != "truncated" for run in runs)}
    lines = (json.dumps({"where": where, **facts}) + "\n" for where, facts in truth.items())
    (root / EVIDENCE_TRUTH_NAME).write_text("".join(lines), encoding="utf-8")


def _write(root: Path, run: SimulatedRun, name: str, data: bytes) -> None:
    _save(root / run.path / name, data, run)


def _save(path: Path, data: bytes, run: SimulatedRun) -> None:
    path.write_bytes(data)
    ended = calendar.timegm(run.ended_at.timetuple())
    os.utime(path, (ended, ended))
