"""Ingests into one home, batch by batch: whether a batch costs the same however much there is already."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home
from tests.processes import cpu_s

LAST = 10
"""Runs of the batch that ends each growth: what a watcher finds in a minute."""


@dataclass(frozen=True)
class Batch:
    """One ingest: runs before it and new ones, seconds by the clock and of processors, and most memory so far."""

    before: int
    new: int
    files: int
    seconds: float
    cpu_s: float
    mb: float
    peak_mb: float


def sweeps(folder: Path, *, runs: int, batches: int) -> list[Path]:
    """Folders of simulated run directories, which make up so many runs, and a last one of LAST."""
    sizes = [runs // batches] * batches + [LAST]
    return [write_sweep(folder / f"sweep{at:03d}", runs=size, seed=1000 + at) for at, size in enumerate(sizes)]


def grown(home: Home, folders: list[Path], *, engine: Engine | None = None, workers: int = 1) -> Iterator[Batch]:
    """What each folder's ingest took."""
    before = 0
    for folder in folders:
        begin, used = time.perf_counter(), cpu_s()
        summary = ingest_paths(home, [str(folder)], with_published=False, engine=engine, workers=workers)
        seconds, cpu = time.perf_counter() - begin, cpu_s() - used
        new = sum(summary.runs.values())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        yield Batch(before, new, summary.files_new, seconds, cpu, summary.bytes_read / 1e6, peak)
        before += new
