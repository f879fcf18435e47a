"""`make load`: a store that grows to so many runs, what a batch costs meanwhile, and how Dask and S3 compare."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake_location import VARIABLE
from tests.load.growth import grown, sweeps
from tests.load.unit_costs import unit_costs
from tests.s3_server import served


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="run directories in the end (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=10, help="ingests that they come in (default: %(default)s)")
    parser.add_argument("--only", choices=("units", "growth", "places"), help="one of the tables")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        if args.only in (None, "units"):
            print("unit costs")
            for what, figure, unit in unit_costs(scratch / "units"):
                print(f"{figure:12,.3f} {unit:<10}  {what}", flush=True)
        folders = sweeps(scratch / "landing", runs=args.runs, batches=args.batches) if args.only != "units" else []
        if args.only in (None, "growth"):
            _print_growth(scratch, folders)
        if args.only in (None, "places"):
            _print_places(scratch, folders[0])


def _print_growth(scratch: Path, folders: list[Path]) -> None:
    print("\n runs before      new    files         s   ms/run  files/s     MB/s  peak MB")
    for one in grown(Home.resolve(str(scratch / "grown")), folders):
        per_run, files, speed = 1e3 * one.seconds / max(one.new, 1), one.files / one.seconds, one.mb / one.seconds
        print(
            f"{one.before:12,d} {one.new:8,d} {one.files:8,d} {one.seconds:9.1f} {per_run:8.1f} {files:8.0f} "
            f"{speed:8.1f} {one.peak_mb:8.0f}",
            flush=True,
        )


def _print_places(scratch: Path, folder: Path) -> None:
    """One batch from cold: in this process, in two, by two Dask workers, and with its lake on S3."""
    print(f"\n{'s':>9}  a batch from cold")
    _print_place("one process", lambda: _ingest(scratch / "one", folder, workers=1))
    _print_place("two processes", lambda: _ingest(scratch / "two", folder, workers=2))
    dask = Engine("dask")
    _print_place("two Dask workers, started for it", lambda: _ingest(scratch / "dask", folder, workers=2, engine=dask))
    with served() as bucket, patch.dict(os.environ, {VARIABLE: f"{bucket}/lake"}):
        _print_place("one process, lake on S3", lambda: _ingest(scratch / "s3", folder, workers=1))


def _print_place(what: str, work: Callable[[], object]) -> None:
    begin = time.perf_counter()
    work()
    print(f"{time.perf_counter() - begin:9.1f}  {what}", flush=True)


def _ingest(home: Path, folder: Path, *, workers: int, engine: Engine | None = None) -> None:
    ingest_paths(Home.resolve(str(home)), [str(folder)], with_published=False, workers=workers, engine=engine)


if __name__ == "__main__":
    sys.exit(main())
