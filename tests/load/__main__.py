"""`make load`: a store that grows to so many runs, what a batch costs meanwhile, and how Dask and S3 compare."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from sweepscope.pipeline.store.home import Home
from tests.load.growth import grown, sweeps
from tests.load.lag import lags
from tests.load.places import long_logs, places
from tests.load.unit_costs import unit_costs


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="run directories in the end (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=10, help="ingests that they come in (default: %(default)s)")
    parser.add_argument("--only", choices=("units", "growth", "lag", "places"), help="one of the tables")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        if args.only in (None, "units"):
            print("unit costs")
            for what, figure, unit in unit_costs(scratch / "units"):
                print(f"{figure:12,.3f} {unit:<10}  {what}", flush=True)
        if args.only == "units":
            return
        folders = sweeps(scratch / "landing", runs=args.runs, batches=args.batches)
        if args.only in (None, "growth"):
            _print_growth(scratch, folders)
        if args.only in (None, "lag"):
            _print_lag(scratch, folders)
        if args.only in (None, "places"):
            _print_places(scratch, folders[0])


def _print_growth(scratch: Path, folders: list[Path]) -> None:
    print("\n runs before      new    files    CPU s CPU ms/run         s  files/s     MB/s  peak MB")
    for one in grown(Home.resolve(str(scratch / "grown")), folders):
        per_run, files, speed = 1e3 * one.cpu_s / max(one.new, 1), one.files / one.seconds, one.mb / one.seconds
        print(
            f"{one.before:12,d} {one.new:8,d} {one.files:8,d} {one.cpu_s:8.1f} {per_run:10.1f} {one.seconds:9.1f} "
            f"{files:8.0f} {speed:8.1f} {one.peak_mb:8.0f}",
            flush=True,
        )


def _print_lag(scratch: Path, folders: list[Path]) -> None:
    home = Home.resolve(str(scratch / ("grown" if (scratch / "grown").exists() else "lag")))
    print("\n s until ten new runs are in the store that pages read, and of these publishing")
    for one in lags(home, scratch / "landing", folders):
        print(f"{one.seconds:9.1f} {one.publish_s:9.1f}", flush=True)


def _print_places(scratch: Path, folder: Path) -> None:
    print(f"\n{'s':>9} {'CPU s':>9}  a batch from cold")
    corpora = {"small runs": folder, "long logs": long_logs(scratch / "long")}
    for one in places(scratch, corpora):
        print(f"{one.seconds:9.1f} {one.cpu_s:9.1f}  {one.corpus}: {one.way}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
