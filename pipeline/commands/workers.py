"""The option `--workers` of verbs that read in several processes."""

from __future__ import annotations

import argparse

from pipeline.errors import UsageError
from pipeline.workers import MOST_BY_DEFAULT, default_workers


def add_workers_argument(parser: argparse.ArgumentParser) -> None:
    """How many processes read."""
    parser.add_argument(
        "--workers", type=int, default=default_workers(), metavar="N",
        help=f"processes that read; small inputs need one only (default: one per core, at most {MOST_BY_DEFAULT})",
    )  # fmt: skip


def asked_workers(args: argparse.Namespace) -> int:
    """The number of processes. Raises UsageError for none."""
    if args.workers < 1:
        raise UsageError(f"--workers must be at least 1, not {args.workers}.")
    return int(args.workers)
