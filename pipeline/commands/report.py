"""`sweepscope report`: what the dashboard says, as one HTML file that can be sent."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from sweepscope.pipeline.commands.output import say_read
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.io.children import import_path
from sweepscope.pipeline.store.home import Home
from sweepscope.schemas.vocab import ORIGIN


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", required=True, help="HTML file to write; an existing one is replaced")
    parser.add_argument(
        "--origin", choices=tuple(ORIGIN), help="whose runs (default: measured ones where there are any)"
    )
    parser.add_argument(
        "--sweep", metavar="NAME", help="one sweep of them (default: all; of published runs the largest)"
    )


def _run(args: argparse.Namespace) -> int:
    out = Path(args.out)
    if out.is_dir():
        raise UsageError(f"{out} is a directory. Name the file: --out {out / 'report.html'}")
    home = Home.resolve(args.home, for_writing=False)
    # The dashboard lies above the command line, so its process is started by name, like its server.
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "sweepscope.dashboard.report.write",
            str(out.absolute()),
            args.origin or "",
            args.sweep or "",
        ],
        env={
            **os.environ,
            "PYTHONSAFEPATH": "1",
            "PYTHONPATH": os.pathsep.join(import_path()),
            "SWEEPSCOPE_HOME": str(home.path),
        },
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise _error(done)
    written = json.loads(done.stdout)
    lines = [f"{part['title']}: {part['answer']}" for part in written["sections"]]
    size = f"{written['bytes'] / 2**20:.1f} MiB, opens without a network"
    say_read(written, "\n".join([*lines, f"Report: {written['report']}  ({size})"]), as_json=args.json)
    return 0


def _error(done: subprocess.CompletedProcess[str]) -> SweepscopeError:
    """The error that a failed process printed: its last line, which a Python that fails ends with too."""
    message = (done.stderr.strip().splitlines() or ["it was stopped"])[-1]
    return UsageError(message) if done.returncode == UsageError.exit_code else SweepscopeError(message)


VERB = Verb(
    name="report",
    description="Write one HTML file that needs no network: headline, best configurations, grids, scaling, failures "
    "and their cost, distance to theory and to published runs, each figure with its SQL.",
    add_arguments=_add_arguments,
    run=_run,
)
