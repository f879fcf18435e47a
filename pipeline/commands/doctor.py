"""`sweepscope doctor`: what keeps this installation or this home from working, and what to do about it."""

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
        (f"{one.state:<5}  {one.check}", f"{one.says}. {one.remedy}" if one.remedy else one.says) for one in findings
    ]
    say_result([asdict(one) for one in findings], table(lines), as_json=args.json)
    return int(any(one.state == "fault" for one in findings))


VERB = Verb(
    name="doctor",
    help="check the installation and the home, with a remedy for what is wrong",
    description="Look at the packages, the machine, the home, its room and locks, the store, dialects, calibration and "
    "Dagster's settings. Exits with 1 when something is at fault; notes are no faults.",
    add_arguments=_add_arguments,
    run=_run,
)
