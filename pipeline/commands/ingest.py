"""`sweepscope ingest PATH...`: one ingest through the Dagster graph, with a summary."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.output import note, say, say_json, table
from sweepscope.pipeline.commands.progress import file_progress
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.commands.worker_option import (
    add_engine_arguments,
    add_workers_argument,
    asked_engine,
    asked_workers,
)
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest.statements import Stated, checked, checked_names
from sweepscope.pipeline.io.process_pool import CORES_PER_READER
from sweepscope.pipeline.store.home import Home

if TYPE_CHECKING:
    from sweepscope.pipeline.ingest.engine import Engine
    from sweepscope.pipeline.ingest.summary import Summary

MAX_LISTED = 10
MIN_SPEED_BYTES = 10_000_000


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="log file, run directory, sweep directory or URL (s3://, gs:// ...)"
    )
    add_published_argument(parser)
    add_dialect_argument(parser)
    _add_stated_arguments(parser)
    parser.add_argument(
        "--again", action="store_true", help="read everything at PATH, also what is known and has not changed"
    )
    add_workers_argument(parser, cores_each=CORES_PER_READER)
    add_engine_arguments(parser)


def add_published_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--no-published`."""
    parser.add_argument(
        "--no-published",
        action="store_true",
        help="do not load the bundled published results now; results that the store already has stay",
    )


def add_dialect_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--dialect`."""
    parser.add_argument(
        "--dialect",
        metavar="FILE",
        action="append",
        default=[],
        help="dialect file (TOML) of an in-house log format; "
        "may be given several times; the home remembers it, and later ingests read with it, too",
    )


def _add_stated_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is stated of the runs at the paths."""
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="state what the logs at PATH do not say, such as --set accelerator=H100-SXM-80GB; may be given several "
        "times; the home remembers it for later ingests, and a sweepscope.toml beside the runs does the same",
    )
    parser.add_argument(
        "--unset", metavar="NAME", action="append", default=[], help="withdraw what --set stated of PATH"
    )
    parser.add_argument(
        "--override", action="store_true", help="what --set states counts even where logs or configurations differ"
    )


def _run(args: argparse.Namespace) -> int:
    workers = asked_workers(args)
    if args.override and not args.set:
        raise UsageError("--override says how much counts what --set states. Give --set NAME=VALUE, too.")
    statement = Stated(checked(args.set), checked_names(args.unset), is_override=args.override)
    summary = ingest_with_progress(
        Home.resolve(args.home),
        args.paths,
        with_published=not args.no_published,
        dialect_files=args.dialect,
        workers=workers,
        engine=asked_engine(args),
        statement=statement,
        again=args.again,
    )
    if args.json:
        say_json(as_dict(summary))
    else:
        say(as_text(summary))
    return 0


def ingest_with_progress(
    home: Home,
    paths: list[str],
    *,
    with_published: bool = True,
    dialect_files: Sequence[str] = (),
    workers: int = 0,
    engine: Engine | None = None,
    statement: Stated | None = None,
    again: bool = False,
) -> Summary:
    """What an ingest with a progress bar did. Raises as `ingest_paths` does."""
    # Late: it imports all readers, and wrong arguments are refused without them.
    from sweepscope.pipeline.orchestration.run import ingest_paths

    with file_progress("reading") as progress:
        return ingest_paths(
            home,
            paths,
            dialect_files=dialect_files,
            with_published=with_published,
            workers=workers,
            engine=engine,
            statement=statement,
            again=again,
            on_plan=progress.plan,
            on_file=progress.advance,
        )


def as_dict(summary: Summary) -> dict[str, Any]:
    """The summary as JSON values."""
    return {
        "files": {
            "seen": summary.files_seen,
            "new": summary.files_new,
            "resumed": summary.files_resumed,
            "linked": len(summary.other_names),
            **summary.files,
        },
        "runs": dict(summary.runs),
        "copies": summary.copies,
        "dialects": summary.dialects,
        "stated": [{"name": name, **counts} for name, counts in sorted(summary.stated.items())],
        "published_runs": summary.published,
        "rows": dict(summary.rows),
        "rejected_files": [{"path": path, "error": error} for path, error in summary.rejected_files],
        "secrets_hidden": [{"path": path, "texts": count} for path, count in summary.secrets_hidden.items()],
        "unknown_logs": summary.unknown_logs,
        "bytes": summary.bytes,
        "bytes_read": summary.bytes_read,
        "seconds": round(summary.seconds, 3),
        "mb_per_s": summary.mb_per_s and round(summary.mb_per_s, 2),
        "store": summary.store,
    }


def as_text(summary: Summary) -> str:
    """The summary as a table of text."""
    files = f"{summary.files_seen:,} seen, {summary.files_new:,} new or changed"
    counted = ", ".join(f"{count:,} {status}" for status, count in summary.files.most_common())
    runs = ", ".join(f"{count:,} {status}" for status, count in summary.runs.most_common())
    rows = ", ".join(f"{count:,} {name}" for name, count in summary.rows.items() if count)
    # With less to read, most of the time is spent on starting and publishing.
    speed = f" ({summary.mb_per_s:,.1f} MB/s)" if summary.mb_per_s and summary.bytes_read >= MIN_SPEED_BYTES else ""
    lines = [("files", f"{files}{': ' + counted if counted else ''}")]
    if summary.files_resumed:
        read = f"{summary.bytes_read / 1e6:,.1f} of {summary.bytes / 1e6:,.1f} MB read"
        lines.append(("resumed", f"{summary.files_resumed:,} that had only grown: {read}"))
    if summary.other_names:
        path, other = next(iter(summary.other_names.items()))
        have = "file has" if len(summary.other_names) == 1 else "files have"
        links = f"{len(summary.other_names):,} {have} another name through a link and count once: {other} is {path}"
        lines.append(("links", links))
    if summary.unknown_logs:
        lines.append(("unknown", _unknown(summary.unknown_logs)))
    copies = f"; {summary.copies:,} more repeat them (`duplicate_of`)" if summary.copies else ""
    lines.append(("runs", f"{sum(summary.runs.values()):,}{': ' + runs if runs else ''}{copies}"))
    if summary.dialects:
        lines.append(("dialects", f"{', '.join(summary.dialects)} (remembered; see `sweepscope dialect list`)"))
    if summary.stated:
        lines.append(("stated", _stated(summary.stated)))
    if summary.published:
        lines.append(("published", f"{summary.published:,} bundled results with their sources"))
    lines.append(("rows", rows or "nothing new"))
    if rejects := summary.rows["rejects"]:
        what = "lines or rows" if rejects > 1 else "line or row"
        lines.append(("rejects", f"{rejects:,} {what} did not parse: `select * from rejects` says which, and why"))
    if summary.secrets_hidden:
        lines.append(("secrets", _secrets(summary.secrets_hidden)))
    lines.append(("time", f"{summary.seconds:.1f} s{speed}"))
    lines.append(("store", summary.store))
    for path, error in summary.rejected_files[:MAX_LISTED]:
        note(f"rejected: {error or path}")
    if len(summary.rejected_files) > MAX_LISTED:
        note(f"rejected: {len(summary.rejected_files) - MAX_LISTED} more; see the files table")
    return table(lines)


def _secrets(hidden: Mapping[str, int]) -> str:
    first = max(hidden, key=lambda path: hidden[path])
    have = f"{len(hidden):,} files have, most of them" if len(hidden) > 1 else "a file has,"
    return f"tokens, keys or passwords, hidden in the store, which {have} {first}: withdraw them if others can read it"


def _stated(counts: Mapping[str, Mapping[str, int]]) -> str:
    """What the user's statements gave, and of how many runs logs say otherwise."""
    parts = []
    for name, runs in sorted(counts.items()):
        others = f" (not of {runs['not_used']:,}, whose logs say it)" if runs["not_used"] else ""
        parts.append(f"{name} of {runs['used']:,} run{'' if runs['used'] == 1 else 's'}{others}")
    return ", ".join(parts)


def _unknown(paths: Sequence[str]) -> str:
    first = f"no dialect knows a line of {len(paths):,} logs, such as" if paths[1:] else "no dialect knows a line of"
    return f"{first} {paths[0]}. To read your own trainer's format, start from `sweepscope dialect example`"


VERB = Verb(
    name="ingest",
    description="Find run directories and logs, parse them, validate the rows and publish the store. Idempotent.",
    add_arguments=_add_arguments,
    run=_run,
)
