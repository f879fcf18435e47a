"""`make bench`: how fast, beside the physical limit, measured in one run. Nothing here is asserted: machines differ.

Every figure is the best of three, so that a busy machine disturbs it least. `grep -c` over the same bytes is the limit
that parsing is held against; `cat` of the same directories is the one for a whole ingest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import current
from tests.benchmarks import logs, memory
from tests.benchmarks.estimate import estimator_rates
from tests.benchmarks.few_new import few_new
from tests.benchmarks.growth import growth
from tests.benchmarks.inference import inference_rates
from tests.benchmarks.large_store import large_store, view_seconds
from tests.benchmarks.nccl import nccl_rates, small_logs
from tests.benchmarks.publishing import publishing

RUNS = 2_000
LARGE = 100_000
TABLE_STYLE: dict[str, Any] = {
    "tbl_hide_dataframe_shape": True,
    "tbl_hide_column_data_types": True,
    "tbl_rows": 20,
    "fmt_str_lengths": 60,
    "tbl_width_chars": 140,
    "float_precision": 2,
}


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest repeat."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def ingest_rate(sweep: Path, scratch: Path) -> pl.DataFrame:
    """Seconds for a sweep end to end through Dagster, and for reading the same files with cat."""
    home = Home.resolve(str(scratch / "home"))
    begin = time.perf_counter()
    summary = ingest_paths(home, [str(sweep)], with_published=False)
    ours = time.perf_counter() - begin
    again = best_of(1, lambda: ingest_paths(home, [str(sweep)], with_published=False))
    cat = best_of(
        3, lambda: subprocess.run(["sh", "-c", f"find '{sweep}' -type f -exec cat {{}} + > /dev/null"], check=True)
    )
    rows = [
        (
            f"{RUNS:,} run directories, end to end",
            ours,
            f"{sum(summary.runs.values()):,} runs, {summary.files_seen:,} files",
        ),
        ("the same again: nothing new", again, "files listed and compared with the ledger"),
        ("find -exec cat of the same files", cat, "the physical limit"),
    ]
    return pl.DataFrame(rows, schema=["ingest", "s", "what"], orient="row")


def query_latency(scratch: Path) -> pl.DataFrame:
    """Seconds of every view over the ingested sweep, and over a store of LARGE runs made of copies of it."""
    small, large = current(scratch / "home"), scratch / "large.duckdb"
    large_store(small, large, runs=LARGE)
    seconds = view_seconds(small).join(view_seconds(large), on="view", suffix=f", {LARGE:,} runs")
    large.unlink()
    return seconds


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as place, pl.Config(**TABLE_STYLE):
        scratch = Path(place)
        sweep = write_sweep(scratch / "sweep", runs=RUNS, seed=1)
        for measure in (
            lambda: logs.rates(sweep, scratch),
            lambda: logs.beside_a_script(scratch),
            lambda: inference_rates(scratch),
            lambda: nccl_rates(scratch),
            lambda: small_logs(scratch),
            lambda: ingest_rate(sweep, scratch),
            lambda: few_new(scratch),
            lambda: growth(sweep, scratch),
            lambda: query_latency(scratch),
            lambda: publishing(current(scratch / "home"), scratch),
            estimator_rates,
            lambda: memory.costs(scratch),
        ):
            sys.stdout.write(f"{measure()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
