"""`sweepscope nccl PATH...`: a summary of NCCL logs and dumps, without a store."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from sweepscope.pipeline.commands.output import note, say_read
from sweepscope.pipeline.commands.progress import file_progress
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.commands.worker_option import add_workers_argument, asked_workers
from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.nccl.names import OPERATIONS

if TYPE_CHECKING:
    from sweepscope.pipeline.inspection.file_regions import Region
    from sweepscope.pipeline.nccl.lines.scan import Scan, Scanned

_SCAN = "sweepscope.pipeline.inspection.file_regions:scan_any"
_WORTH_BYTES = 64 << 20
"""Fewer bytes are read before another process has started."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="NCCL log, nccl-tests output, flight recorder dump, or a directory of them",
    )
    parser.add_argument(
        "--op",
        choices=OPERATIONS,
        metavar="OP",
        help=f"operation of benchmark tables that do not print it: {', '.join(OPERATIONS)}",
    )
    parser.add_argument(
        "--raw-collectives",
        metavar="OUT.parquet",
        help="write every call of NCCL_DEBUG_SUBSYS=COLL, one row each, to this file as well",
    )
    add_workers_argument(parser)


def _run(args: argparse.Namespace) -> int:
    workers = asked_workers(args)
    # Other processes start first, so that they import modules while this one does.
    scanners: ProcessPool[Scan | Region, Scanned] = ProcessPool(_SCAN, workers if _is_large(args.paths) else 1)
    with scanners:
        from sweepscope.pipeline.inspection.calls_parquet import CallsFile
        from sweepscope.pipeline.inspection.nccl_findings import nccl_findings
        from sweepscope.pipeline.inspection.nccl_scan import read_network
        from sweepscope.pipeline.nccl.summary import as_text, as_values

        calls = CallsFile(args.raw_collectives) if args.raw_collectives else None
        with calls or nullcontext(), file_progress("reading") as progress:
            tables, errors = read_network(
                args.paths,
                scanners=scanners,
                bench_op=args.op,
                calls=calls,
                on_plan=progress.plan,
                on_file=progress.advance,
            )
    if calls:
        note(f"{calls.rows:,} calls written to {args.raw_collectives}")
    for error in errors:
        note(f"sweepscope: {error}")
    tables["nccl_findings"] = nccl_findings(tables)
    values = as_values(tables)
    if not values:
        raise InputError(
            f"No NCCL output in {', '.join(args.paths)}. Set NCCL_DEBUG=INFO in the job, or give nccl-tests output or "
            "flight recorder dumps."
        )
    say_read(values, as_text(tables), as_json=args.json)
    return 0


def _is_large(paths: Iterable[str]) -> bool:
    """Whether these files are worth several processes; remote ones are taken to be."""
    total = 0
    for path in paths:
        inside = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        for file in inside if os.path.isdir(path) else [path]:
            with suppress(OSError):
                total += os.path.getsize(file)
            if total >= _WORTH_BYTES:
                return True
    return any("://" in path for path in paths)


VERB = Verb(
    name="nccl",
    description="Summarise versions, communicators, transports, traffic, bandwidths, warnings, the suspects of hangs "
    "and the findings of the rules. Reads files directly; nothing is stored.",
    add_arguments=_add_arguments,
    run=_run,
)
