"""The options `--workers` and `--engine` of verbs that read in several processes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.io.process_pool import MOST_BY_DEFAULT, default_workers

if TYPE_CHECKING:
    from sweepscope.pipeline.ingest.engine import Engine

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


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--engine` and `--dask-address`."""
    parser.add_argument(
        "--engine",
        choices=("local", "dask"),
        help="who reads: this machine's processes (default), or Dask workers, --workers of them here without "
        "--dask-address; needs pip install 'sweepscope[dask]'",
    )
    parser.add_argument(
        "--dask-address",
        metavar="HOST:PORT",
        help="scheduler of a Dask cluster whose workers see the paths and have this version of sweepscope",
    )


def asked_engine(args: argparse.Namespace) -> Engine:
    """The value of `--engine` and `--dask-address`. Raises UsageError."""
    from sweepscope.pipeline.ingest.engine import Engine

    engine = Engine.asked(args.engine, args.dask_address)
    engine.check()
    return engine
