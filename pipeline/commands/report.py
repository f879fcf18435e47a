"""`sweepscope report`: what the dashboard says, as one file that can be sent."""

from __future__ import annotations

import argparse
import re
from datetime import date, timedelta
from pathlib import Path

from sweepscope.pipeline.commands.dashboard_process import written
from sweepscope.pipeline.commands.output import say_read
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import Home
from sweepscope.schemas.vocab import ORIGIN

FORMATS = ("html", "md")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", required=True, help="file to write; an existing one is replaced")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="html: charts, opens without a network; md: Markdown (default: by the file's name)",
    )
    parser.add_argument(
        "--since",
        metavar="DATE",
        help="begin with what came since that day: YYYY-MM-DD, or 7d for a number of days (for a weekly mail)",
    )
    parser.add_argument(
        "--origin", choices=tuple(ORIGIN), help="whose runs (default: measured ones where there are any)"
    )
    parser.add_argument(
        "--sweep", metavar="NAME", help="one sweep of them (default: all; of published runs the largest)"
    )


def day_of(text: str, today: date) -> date:
    """The day that `--since` names. Raises UsageError for another text, and for a day to come.

    >>> day_of("7d", date(2026, 11, 24)), day_of("2026-11-01", date(2026, 11, 24))
    (datetime.date(2026, 11, 17), datetime.date(2026, 11, 1))
    """
    try:
        days = re.fullmatch(r"(\d{1,5})d", text)
        day = today - timedelta(days=int(days[1])) if days else date.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--since takes a day as 2026-11-17, or days as 7d, not {text!r}.") from error
    if day > today:
        raise UsageError(f"--since {text} is a day to come.")
    return day


def _form(out: Path, asked: str | None) -> str:
    """`asked`, else by the name of the file. Raises UsageError where that ends in neither .html nor .md."""
    forms = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}
    found = asked or forms.get(out.suffix.lower())
    if found is None:
        raise UsageError(f"{out.name} ends in neither .html nor .md. Give --format {' or '.join(FORMATS)}.")
    return found


def _run(args: argparse.Namespace) -> int:
    out = Path(args.out)
    if out.is_dir():
        raise UsageError(f"{out} is a directory. Name the file: --out {out / 'report.html'}")
    form = _form(out, args.format)
    # Times of logs have no zone, so the day is that of this machine.
    since = day_of(args.since, date.today()).isoformat() if args.since else ""
    home = Home.resolve(args.home, for_writing=False)
    found = written("report.write", home, str(out.absolute()), form, args.origin or "", args.sweep or "", since)
    lines = [f"{part['title']}: {part['answer']}" for part in found["sections"]]
    size = f"{found['bytes'] / 2**20:.1f} MiB" + (", opens without a network" if form == "html" else "")
    say_read(found, "\n".join([*lines, f"Report: {found['report']}  ({size})"]), as_json=args.json)
    return 0


VERB = Verb(
    name="report",
    description="Write one file that needs no network: the question, best configurations and how sure they are, "
    "grids, scaling, failures and their cost, distance to theory and to published runs, what to run next, each figure "
    "with its SQL. With --since it begins with what is new.",
    add_arguments=_add_arguments,
    run=_run,
)
