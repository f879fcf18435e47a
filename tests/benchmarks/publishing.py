"""What it costs to publish a store: whole, and after ten more runs, beside copying the file, as the lake grows."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import duckdb
import polars as pl

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES
from tests.benchmarks.large_store import large_store
from tests.pipeline.store.lake_rows import together, unit

SIZES = (1_000, 10_000, 100_000)
NEW = 10

_Result = TypeVar("_Result")


def publishing(source: Path, scratch: Path) -> pl.DataFrame:
    """CPU seconds by number of runs; `source` is a published store, of which the lakes hold copies."""
    rows = [_costs(source, scratch / f"published-{runs}", runs) for runs in SIZES]
    columns = (
        "runs in the store",
        "MB",
        "whole: CPU s",
        f"{NEW} more: CPU s",
        "copying the file: CPU s",
        "RSS MB so far",
    )
    return pl.DataFrame(rows, schema=columns, orient="row")


def _costs(source: Path, scratch: Path, runs: int) -> tuple[int, float, float, float, float, float]:
    home = Home.resolve(str(scratch / "home"))
    lake = Lake(home)
    large_store(source, scratch / "large.duckdb", runs=runs)
    with duckdb.connect(str(scratch / "large.duckdb"), read_only=True) as connection:
        lake.commit({name: connection.sql(f"SELECT * FROM {ddl.quote(name)}").pl() for name in TABLES})
    whole, _ = _cpu_s(lambda: publish(home))
    lake.commit(together(unit(f"new-{number}", steps=100) for number in range(NEW)))
    more, done = _cpu_s(lambda: publish(home))
    copied, _ = _cpu_s(lambda: shutil.copyfile(done.path, scratch / "copy.duckdb"))
    size, rss = done.path.stat().st_size / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shutil.rmtree(scratch)
    return done.rows["runs"], size, whole, more, copied, rss


def _cpu_s(work: Callable[[], _Result]) -> tuple[float, _Result]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found
