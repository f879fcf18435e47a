"""What a whole `sweepscope ingest` costs when a few new run directories have appeared among many: processor time.

As a user starts it, in a process of its own: imports, listing, reading, validating, committing and publishing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sweepscope.pipeline.simulate.sweep import write_sweep
from tests.processes import children_cpu_s

SIZES = (500, 4_000)
NEW = 12
TIMES = 3


def few_new(scratch: Path, *, sizes: Sequence[int] = SIZES) -> pl.DataFrame:
    """A row per size of the store: processor seconds with new runs each time (least and most), and with none."""
    rows = [_costs(scratch / f"few-new-{runs}", runs) for runs in sizes]
    columns = ("runs in the store", f"ingest of {NEW} new: least CPU s", "most", "nothing new: CPU s")
    return pl.DataFrame(rows, schema=columns, orient="row")


def _costs(scratch: Path, runs: int) -> tuple[int, float, float, float]:
    sweep, home = write_sweep(scratch / "sweep", runs=runs, seed=1), scratch / "home"
    _ingest_cpu_s(sweep, home)
    costs = []
    for number in range(TIMES):
        write_sweep(sweep / f"new-{number}", runs=NEW, seed=100 + number)
        costs.append(_ingest_cpu_s(sweep, home))
    return runs, min(costs), max(costs), min(_ingest_cpu_s(sweep, home) for _ in range(TIMES))


def _ingest_cpu_s(sweep: Path, home: Path) -> float:
    """Processor seconds of an ingest, the processes that it starts included."""
    before = children_cpu_s()
    command = [sys.executable, "-m", "sweepscope", "ingest", str(sweep), "--home", str(home), "--no-published"]
    subprocess.run(command, check=True, capture_output=True)
    return children_cpu_s() - before
