"""One batch from cold by one reader, two, two workers of Dask, and into a lake on S3; each ingest a process of its own.

One reader has one thread of polars here, as each of several has. By itself it has as many as there are cores, and
comparing that with two workers compares two cores with two.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.lake_location import VARIABLE
from tests.long_logs import counted_on, longest_steps, write_log
from tests.processes import children_cpu_s
from tests.s3_server import served

LOGS = 16
LOG_BYTES = 25_000_000

WAYS: Mapping[str, tuple[str, ...]] = {
    "one reader": ("--workers", "1"),
    "two readers": ("--workers", "2"),
    "two Dask workers, started for it": ("--engine", "dask", "--workers", "2"),
}


@dataclass(frozen=True)
class Cost:
    """Of one ingest, with the processes that it starts: seconds by the clock, and of the processors."""

    corpus: str
    way: str
    seconds: float
    cpu_s: float


def long_logs(folder: Path, *, logs: int = LOGS, size: int = LOG_BYTES) -> Path:
    """A sweep of so many runs, each with one log of `size` bytes: reading it is all that an ingest has to do."""
    # Of a run each: logs that say the same are copies, of which one counts.
    simulated = write_sweep(folder.parent / f"{folder.name}-simulated", runs=3 * logs, seed=4, frameworks=["picotron"])
    for number, line in zip(range(logs), longest_steps(simulated), strict=False):
        run = folder / f"dp{number + 1}_tp1_pp1"
        run.mkdir(parents=True)
        write_log(run / "log.out", counted_on(line), size=size)
    return folder


def places(scratch: Path, corpora: Mapping[str, Path]) -> Iterator[Cost]:
    """What each way takes for each corpus, and a lake on S3 (moto's server, in this process) for each."""
    for name, folder in corpora.items():
        homes = scratch / f"homes of {name}"
        for way, options in WAYS.items():
            yield _cost(name, way, folder, homes / way, options)
        with served() as bucket, patch.dict(os.environ, {VARIABLE: f"{bucket}/lake"}):
            yield _cost(name, "one reader, lake on S3", folder, homes / "S3", WAYS["one reader"])


def _cost(corpus: str, way: str, folder: Path, home: Path, options: tuple[str, ...]) -> Cost:
    command = [sys.executable, "-m", "sweepscope", "ingest", str(folder), "--home", str(home), "--no-published"]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    begin, cpu = time.perf_counter(), children_cpu_s()
    subprocess.run([*command, *options], env=environment, check=True, capture_output=True)
    return Cost(corpus, way, time.perf_counter() - begin, children_cpu_s() - cpu)
