"""`sweepscope watch PATH...`: Dagster's webserver and daemon, whose sensor ingests new runs."""

from __future__ import annotations

import argparse
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import replace

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.commands.ingest import add_dialect_argument, add_published_argument
from sweepscope.pipeline.commands.output import note, say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.commands.worker_option import add_engine_arguments, asked_engine
from sweepscope.pipeline.ingest.dialect_files import remember
from sweepscope.pipeline.ingest.plan import awaited
from sweepscope.pipeline.io.web_access import Access, with_token
from sweepscope.pipeline.orchestration.watched_paths import LEAST_EVERY_S, every_s
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.watcher import Servers, watching


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Paths to watch, dialect files and Dagster's port."""
    add_published_argument(parser)
    add_dialect_argument(parser)
    add_engine_arguments(parser)
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="directories or URLs where run directories appear; they may still have to",
    )
    parser.add_argument(
        "--dagster-port", type=int, default=servers.WEBSERVER_PORT, help="port of Dagster's page (default: %(default)s)"
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=_seconds,
        default=every_s(),
        help=f"seconds between two looks at the paths, {LEAST_EVERY_S} or more (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-launch",
        action="store_true",
        help="let Dagster's page launch runs and switch the sensor; its address then has a token",
    )


def _seconds(text: str) -> int:
    """A number of seconds between looks. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < LEAST_EVERY_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from {LEAST_EVERY_S} on")
    return int(text)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_watch_arguments(parser)
    servers.add_host_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home)
    remember(home, args.dialect)
    asked_engine(args)  # a wrong one is an error now rather than in each run
    waiting = awaited(args.paths)  # reports a wrong path now rather than in a sensor's tick
    with watching(home, args.paths, on_wait=note) as shared:
        servers.check_port(args.dagster_port, args.host, "--dagster-port")
        url, processes = start_dagster(args, home, servers.access_of(args), shared)
        shared.note([process.pid for process in processes])
        value = {"dagster": url, "watching": args.paths, "waiting_for": waiting, "home": str(home.path)}
        text = f"{watching_text(args.paths, waiting, args.every)} Dagster: {url}  (stop with Ctrl-C)"
        return servers.serve({url: processes[0]}, lambda: say_result(value, text, as_json=args.json), processes[1:])


def watching_text(paths: Sequence[str], waiting: Sequence[str], interval_s: int) -> str:
    """What is watched, in sentences; `waiting` are those of the paths at which there is no file yet.

    >>> watching_text(["/a", "/b"], ["/b"], 30)
    'Watching /a, /b every 30 s. No file yet at /b: what appears there is read.'
    """
    text = f"Watching {', '.join(paths)} every {interval_s} s."
    return f"{text} No file yet at {', '.join(waiting)}: what appears there is read." if waiting else text


def start_dagster(
    args: argparse.Namespace, home: Home, access: Access, shared: Servers
) -> tuple[str, tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """Address of Dagster's page, and the processes of its webserver and daemon."""
    token = secrets.token_urlsafe(24) if args.allow_launch and access.password is None else None
    access = replace(access, password=token or access.password)
    if lost := _close_lost_runs(home):
        runs = "1 run was" if lost == 1 else f"{lost} runs were"
        note(f"{runs} killed before the end; what they were to read is read again.")
    note("Starting Dagster, which takes about ten seconds ...")
    processes = servers.dagster_processes(
        home,
        args.paths,
        args.dagster_port,
        args.host,
        access,
        with_published=not args.no_published,
        engine=asked_engine(args),
        may_launch=args.allow_launch,
        every_s=args.every,
        inherited=[shared.handle],
    )
    url = servers.page_url(args.host, args.dagster_port)
    return with_token(url, token), processes


def _close_lost_runs(home: Home) -> int:
    """Number of runs that an earlier process of this home left unfinished."""
    from sweepscope.pipeline.orchestration.instance import open_instance
    from sweepscope.pipeline.orchestration.lost_runs import close_lost_runs
    from sweepscope.pipeline.orchestration.report_runs import report_runs

    with open_instance(home) as instance:
        report_runs(instance, home)
        return len(close_lost_runs(instance, home))


VERB = Verb(
    name="watch",
    description="Run Dagster's webserver and daemon. A sensor looks for new or changed runs every 30 seconds; "
    "an hourly schedule, off until you switch it on, is for places where sensors are off.",
    add_arguments=_add_arguments,
    run=_run,
)
