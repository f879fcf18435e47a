"""`python -m tests.chaos`: kill writers again and again, and print what became of the data."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.killing import Chaos
from tests.chaos.setups import NAMES, set_up


def main() -> int:
    """0 when nothing was lost, doubled, half or stuck."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="ingests and compactions to kill (default: %(default)s)")
    parser.add_argument("--watches", type=int, default=6, help="watchers and their runs to kill (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and of the sweep (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=120, help="start no ingest after this (default: %(default)s)")
    parser.add_argument("--over", choices=NAMES, default=NAMES[0], help="what to read and store with (%(default)s)")
    args = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, set_up(args.over) as setup:
        outcome = Chaos(Path(folder), args.seed, setup).run(
            ingests=args.kills,
            watches=args.watches,
            seconds=60 * args.minutes,
            on_kill=lambda kills: print(f"\r{kills:,d} of {args.kills:,d} kills", end="", file=sys.stderr, flush=True),
        )
    print(file=sys.stderr)
    for what, count in sorted(outcome.kills.items()):
        print(f"{count:6,d}  killed: {what}")
    print(f"{sum(outcome.kills.values()):6,d}  kills in {time.monotonic() - begin:.0f} s")
    print(f"{outcome.reads:6,d}  reads beside them")
    for name in ("lost", "doubled", "half", "stuck"):
        found = getattr(outcome, name)
        print(f"{len(found):6,d}  {name}")
        for text in found[:5]:
            print(f"        {text}")
    seconds = ", ".join(f"{value:.0f}" for value in outcome.seconds_to_ingest)
    print(f"        seconds until the next watcher had ingested what was new: {seconds or 'none was started'}")
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
