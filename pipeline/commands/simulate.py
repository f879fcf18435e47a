"""`sweepscope simulate DIR`: write a simulated raw sweep and its ground truth."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.simulate.sweep import write_sweep


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="where to write; must be empty or not exist")
    parser.add_argument("--runs", type=count, default=200, help="run directories to write (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same bytes (default: %(default)s)")


def _run(args: argparse.Namespace) -> int:
    if args.runs < 1:
        raise UsageError(f"--runs must be at least 1, not {args.runs}.")
    path = write_sweep(args.directory, runs=args.runs, seed=args.seed, evidence=True)
    text = f"Wrote {args.runs:,} simulated run directories to {path}. Next: sweepscope ingest {path}"
    say_result({"path": str(path), "runs": args.runs, "seed": args.seed}, text, as_json=args.json)
    return 0


VERB = Verb(
    name="simulate",
    description="Write run directories as nanotron, picotron, Megatron and torchtitan would, failures included. "
    "Ingest marks them 'simulated' and never mixes them with measured runs.",
    add_arguments=_add_arguments,
    run=_run,
)
