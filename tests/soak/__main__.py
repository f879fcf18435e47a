"""`python -m tests.soak`: a simulated day under a real watcher, and a table of what grew and what was lost."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.measuring import Sample
from tests.soak.soaking import Soak

_HEAD = " hour  memory MB  Dagster MB   runs  ticks  releases  files  store MB"


def main() -> int:
    """0 when no row was lost, nothing is damaged, and Dagster's storage did not go on growing."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--hours", type=int, default=24, help="simulated hours (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=20, help="in which they go by (default: %(default)s)")
    parser.add_argument(
        "--writes", type=int, default=20, help="runs that appear or grow per hour (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sweep (default: %(default)s)")
    args = parser.parse_args()
    print(_HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), args.seed)
        # A simulated day prunes as a week would: runs of an hour ago are old.
        soak.home.operations.write_text(f"[retention]\nsucceeded_days = {1.5 / 24}\nskipped_tick_days = {1 / 24}\n")
        done = soak.run(hours=args.hours, minutes=args.minutes, writes_per_hour=args.writes, on_hour=_print)
    for name, found in (("lost", done.lost), ("problems", done.problems)):
        print(f"{len(found):5d} {name}")
        for text in found[:5]:
            print(f"      {text}")
    print(f"{done.runs_written:5d} runs written; the last was read {done.catch_up_s:.0f} s after the end")
    half = len(done.samples) // 2
    is_bounded = len(done.samples) < 6 or _peak(done.samples[half:]) <= 1.25 * _peak(done.samples[2:half])
    print(f"      Dagster's storage {'stayed bounded' if is_bounded else 'went on growing'}")
    return 0 if is_bounded and not done.lost and not done.problems else 1


def _peak(samples: list[Sample]) -> int:
    return max(sample.dagster_bytes for sample in samples)


def _print(one: Sample) -> None:
    print(
        f"{one.hours:5.0f} {one.memory_bytes / 1e6:10,.0f} {one.dagster_bytes / 1e6:11,.1f} {one.dagster_runs:6,d} "
        f"{one.ticks:6,d} {one.releases:9,d} {one.lake_files:6,d} {one.store_bytes / 1e6:9,.1f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
