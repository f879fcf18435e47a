"""What single units of work cost: a file, a run, a step, a commit, a request to S3. docs/scale.md rests on these."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import s3fs

from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.lake_location import VARIABLE
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import current
from tests.pipeline.store.lake_rows import accelerators, together, unit
from tests.processes import cpu_s
from tests.s3_server import served

Row = tuple[str, float, str]
"""What was measured, the figure, and its unit."""

RUNS = 200
STEPS = 300_000
COMMITS = 20


def unit_costs(scratch: Path) -> list[Row]:
    """All of them. Takes minutes."""
    return [*of_files_and_runs(scratch / "runs"), *of_steps(scratch / "steps"), *of_commits(scratch / "commits")]


def of_files_and_runs(scratch: Path) -> list[Row]:
    """Of RUNS small run directories: read from cold, and looked at again."""
    sweep, home = write_sweep(scratch / "sweep", runs=RUNS, seed=2), Home.resolve(str(scratch / "home"))
    begin, cpu = time.perf_counter(), cpu_s()
    summary = ingest_paths(home, [str(sweep)], with_published=False)
    seconds, cpu = time.perf_counter() - begin, cpu_s() - cpu
    again = cpu_s()
    ingest_paths(home, [str(sweep)], with_published=False)
    again = cpu_s() - again
    runs = sum(summary.runs.values())
    return [
        ("a run of 100 steps, from its files to the published store", 1e3 * cpu / runs, "ms CPU"),
        ("the same by the clock", 1e3 * seconds / runs, "ms"),
        ("a file that is known: listed and compared with the ledger", 1e3 * again / summary.files_seen, "ms CPU"),
        ("a run in the lake", _size(home.lake) / runs / 1e3, "kB"),
        ("a run in the published store", current(home.path).stat().st_size / runs / 1e3, "kB"),
    ]


def of_steps(scratch: Path) -> list[Row]:
    """Of one commit of STEPS rows of `steps`, and a publish of them."""
    home = Home.resolve(str(scratch / "home"))
    rows = together([unit("a", steps=STEPS), accelerators("H100")])
    cpu = cpu_s()
    Lake(home).commit(rows)
    committed = cpu_s() - cpu
    publish(home)
    published = cpu_s() - cpu - committed
    return [
        ("a step, committed to the lake", 1e6 * committed / STEPS, "us CPU"),
        ("a step, published", 1e6 * published / STEPS, "us CPU"),
        ("a step in the lake", _size(home.lake) / STEPS, "B"),
        ("a step in the published store", current(home.path).stat().st_size / STEPS, "B"),
    ]


def of_commits(scratch: Path) -> list[Row]:
    """Of COMMITS commits of one run each, to a lake on disk and to one on S3 (moto's server, in this process)."""
    here = _commit_s(Home.resolve(str(scratch / "here")))
    with served() as bucket, patch.dict(os.environ, {VARIABLE: f"{bucket}/lake"}), counted() as requests:
        home = Home.resolve(str(scratch / "there"))
        there = _commit_s(home)
        of_commits = requests.total() / (COMMITS + 1)
        kinds = ", ".join(f"{count / (COMMITS + 1):.1f} {kind}" for kind, count in requests.most_common())
        requests.clear()
        Lake(home).refresh()
        looked = requests.total()
    return [
        ("a commit of one run, on disk", 1e3 * here, "ms"),
        ("the same on S3, this machine serving it", 1e3 * there, "ms"),
        ("requests of that commit", of_commits, kinds),
        ("requests to see that nothing is new", looked, ""),
    ]


def _commit_s(home: Home) -> float:
    Lake(home).commit(unit("first"))
    begin = time.perf_counter()
    for number in range(COMMITS):
        Lake(home).commit(unit(f"run{number}"))
    return (time.perf_counter() - begin) / COMMITS


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Requests to S3 meanwhile, by kind."""
    requests: Counter[str] = Counter()
    call: Callable[..., object] = s3fs.S3FileSystem._call_s3

    def counting(self: s3fs.S3FileSystem, method: str, *rest: object, **options: object) -> object:
        requests[method] += 1
        return call(self, method, *rest, **options)

    with patch.object(s3fs.S3FileSystem, "_call_s3", counting):
        yield requests


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
