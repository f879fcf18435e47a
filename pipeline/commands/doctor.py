"""`sweepscope doctor`: faults of this installation and this home, with remedies."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser  # --home and --json are those of every verb


def _run(args: argparse.Namespace) -> int:
    from sweepscope.pipeline.inspection.doctor import examine

    findings = examine(args.home)
    lines = [
        (f"{found.state:<5}  {found.check}", f"{found.message}. {found.remedy}" if found.remedy else found.message)
        for found in findings
    ]
    say_result([asdict(found) for found in findings], table(lines), as_json=args.json)
    return int(any(found.state == "fault" for found in findings))


VERB = Verb(
    name="doctor",
    description="Check the packages, the machine, the home, its disk space and locks, the store, dialects, calibration "
    "and Dagster's settings. Exits with 1 for a fault; notes are no faults.",
    add_arguments=_add_arguments,
    run=_run,
)
