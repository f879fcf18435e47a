"""`sweepscope store path|versions|verify|compact`: look after the published store and the lake."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import current, versions


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("path", "versions", "verify", "compact"), help="what to show or do")


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home, for_writing=args.action == "compact")
    return {"path": _path, "versions": _versions, "verify": _verify, "compact": _compact}[args.action](home, args.json)


def _path(home: Home, as_json: bool) -> int:
    path = str(current(home.path))
    say_result({"path": path}, path, as_json=as_json)
    return 0


def _versions(home: Home, as_json: bool) -> int:
    current(home.path)  # raises, with the remedy, where nothing has been published
    rows = versions(home.path)
    lines = [
        (f"{'*' if row.is_current else ' '} {row.version}", f"{row.bytes / 1e6:8.1f} MB  {row.path}") for row in rows
    ]
    say_result([vars(row) for row in rows], table(lines), as_json=as_json)
    return 0


def _verify(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.store import maintenance

    report = maintenance.verify(home)
    lines = [(name, f"{rows:>10,} rows  {digest}") for name, rows, digest in report.tables]
    say_result(report.as_dict(), table(lines), as_json=as_json)
    if report.problems:
        problems = "; ".join(report.problems)
        raise StoreError(f"The store does not match its lake: {problems}. Publish it with `sweepscope ingest PATH`.")
    return 0


def _compact(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.store import maintenance

    done = maintenance.compact(home)
    say_result(done, table([(name, str(value)) for name, value in done.items()]), as_json=as_json)
    return 0


VERB = Verb(
    name="store",
    help="path, versions, verification and compaction of the store",
    description="path: the current file. versions: those kept. verify: every table against the lake. "
    "compact: merge small files in the lake.",
    add_arguments=_add_arguments,
    run=_run,
)
