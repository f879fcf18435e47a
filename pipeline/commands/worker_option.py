"""The option `--workers` of verbs that read in several processes."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.io.process_pool import MOST_BY_DEFAULT, default_workers

MOST = 64
"""More would wait for the process that feeds them."""


def add_workers_argument(parser: argparse.ArgumentParser, *, cores_each: int = 1) -> None:
    """Add `--workers`, whose default assumes that each process keeps `cores_each` cores busy."""
    cores = "core" if cores_each == 1 else f"{cores_each} cores"
    parser.add_argument(
        "--workers",
        type=int,
        default=default_workers(cores_each=cores_each),
        metavar="N",
        help=f"how many read at once; small inputs need one only (default: one per {cores}, at most {MOST_BY_DEFAULT})",
    )


def asked_workers(args: argparse.Namespace) -> int:
    """The value of `--workers`. Raises UsageError for one out of range."""
    if not 1 <= args.workers <= MOST:
        raise UsageError(f"--workers must be between 1 and {MOST}, not {args.workers}.")
    return int(args.workers)
