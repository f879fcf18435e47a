"""`sweepscope store path|versions|verify|publish|compact|prune|forget`: look after store and lake."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import current, versions

if TYPE_CHECKING:
    from sweepscope.pipeline.store.maintenance import Tidied

_MANY_FILES = 10

_ACTIONS = ("path", "versions", "verify", "publish", "compact", "prune", "forget")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, help="what to show or do")
    parser.add_argument("what", metavar="PATH", nargs="?", help="file or folder to forget, as it was ingested")
    parser.add_argument("--yes", action="store_true", help=f"forget more than {_MANY_FILES} files without asking")


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home, for_writing=args.action in {"publish", "compact", "prune", "forget"})
    if args.action == "forget":
        return _forget(home, args.what, is_sure=args.yes, as_json=args.json)
    if args.what:
        raise UsageError(f"`sweepscope store {args.action}` takes no path. `sweepscope store forget PATH` does.")
    return _DO[args.action](home, args.json)


def _path(home: Home, as_json: bool) -> int:
    file = current(home.path)  # raises, with the remedy, where nothing has been published
    path = str(home.link)
    say_result({"path": path, "file": str(file)}, path, as_json=as_json)
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
    for text in report.notes:
        note(text)
    if report.problems:
        problems = "; ".join(report.problems)
        raise StoreError(f"The store does not match its lake: {problems}. Publish it with `sweepscope ingest PATH`.")
    return 0


def _publish(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.store.publish import publish

    done = publish(home)
    text = f"{'published' if done.is_new else 'nothing new:'} version {done.version} of release {done.release}"
    value = {"version": done.version, "release": done.release, "is_new": done.is_new, "path": str(done.path)}
    say_result(value, text, as_json=as_json)
    return 0


def _compact(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.store import maintenance

    done = maintenance.compact(home)
    lines = [("lake", f"release {done.release}, small files merged"), *_lake_lines(done)]
    say_result(done.as_dict(), table(lines), as_json=as_json)
    return 0


def _prune(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.orchestration.instance import open_instance
    from sweepscope.pipeline.orchestration.upkeep import keep_up

    with open_instance(home) as instance:
        done = keep_up(home, instance)
    records = done.records
    freed = f"{records.bytes_freed / 1e6:,.1f} MB freed"
    lines = [
        ("runs", f"{records.runs:,} of Dagster's records of runs removed, {freed}"),
        ("ticks", f"{records.ticks:,} removed"),
        *(
            [("orphans", f"{records.orphans:,} files of runs that were no longer listed removed")]
            if records.orphans
            else []
        ),
        *_lake_lines(done.lake),
    ]
    say_result(done.as_dict(), table(lines), as_json=as_json)
    return 0


def _lake_lines(done: Tidied) -> list[tuple[str, str]]:
    return [
        ("releases", f"{done.releases_removed:,} that no reader needs removed"),
        ("files", f"{done.files_removed:,} of the lake removed, {done.bytes_removed / 1e6:,.1f} MB freed"),
        ("logs at rest", f"{done.records_removed:,} records removed"),
    ]


def _forget(home: Home, path: str | None, *, is_sure: bool, as_json: bool) -> int:
    from sweepscope.pipeline.io.file_names import printable
    from sweepscope.pipeline.io.files import canonical
    from sweepscope.pipeline.store.forget import forget, forgettable

    if not path:
        raise UsageError("Name what to forget: `sweepscope store forget PATH`, a file or a folder as it was ingested.")
    # A name such as train.log#1 is one of the store, and relative to the current directory as any other.
    found = forgettable(home, printable(canonical(path)))
    extent = f"{len(found.files):,} files with {found.runs:,} runs"
    if len(found.files) > _MANY_FILES and not is_sure and not _agrees(f"Forget {extent} of {found.path}?"):
        raise UsageError(f"{extent} of {found.path} were not forgotten. Add --yes to forget them.")
    release = forget(home, found)
    lines = [(name, f"{count:,} rows removed") for name, count in found.rows.items()]
    lines.append(("runs", f"{found.runs:,} forgotten; `sweepscope ingest {found.path}` reads them again"))
    say_result({**found.as_dict(), "release": release}, table(lines), as_json=as_json)
    return 0


def _agrees(question: str) -> bool:
    """Whether someone at the terminal says yes; false without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


_DO = {
    "path": _path,
    "versions": _versions,
    "verify": _verify,
    "publish": _publish,
    "compact": _compact,
    "prune": _prune,
}

VERB = Verb(
    name="store",
    description="path: the store, under a name that stays. versions: those kept. verify: every table against the lake. "
    "publish: show what the lake has, also what others committed to a shared one. "
    "compact: merge small files in the lake. prune: remove Dagster's records of old runs and ticks, and releases of "
    "the lake that no reader needs, as `watch` does by itself. forget: remove what was read of a file or folder; "
    "the next ingest of the path reads it anew.",
    add_arguments=_add_arguments,
    run=_run,
)
