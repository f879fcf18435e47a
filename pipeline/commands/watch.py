"""`sweepscope watch PATH...`: Dagster's webserver and daemon, whose sensor ingests new runs."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.commands.ingest import add_dialect_argument, add_published_argument
from sweepscope.pipeline.commands.output import note, say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.ingest.dialect_files import in_force, remember
from sweepscope.pipeline.ingest.plan import find
from sweepscope.pipeline.store.home import Home


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Paths to watch, dialect files and Dagster's port."""
    add_published_argument(parser)
    add_dialect_argument(parser)
    parser.add_argument("paths", metavar="PATH", nargs="+", help="directories or URLs where run directories appear")
    parser.add_argument(
        "--dagster-port", type=int, default=servers.WEBSERVER_PORT, help="port of Dagster's page (default: %(default)s)"
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_watch_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home)
    remember(home, args.dialect)
    find(args.paths, dialects=in_force(home).dialects)  # report a wrong path now rather than in a sensor's tick
    servers.check_port(args.dagster_port, args.host, "--dagster-port")
    note("Starting Dagster, which takes about ten seconds ...")
    process = servers.dagster_process(
        home, args.paths, args.dagster_port, args.host, with_published=not args.no_published
    )
    url = f"http://{args.host}:{args.dagster_port}"
    value = {"dagster": url, "watching": args.paths, "home": str(home.path)}
    text = f"Watching {', '.join(args.paths)} every 30 s. Dagster: {url}  (stop with Ctrl-C)"
    return servers.serve({url: process}, lambda: say_result(value, text, as_json=args.json))


VERB = Verb(
    name="watch",
    help="ingest new runs as they appear (Dagster daemon with a sensor)",
    description="Run Dagster's webserver and daemon. A sensor looks for new or changed runs every 30 seconds; "
    "an hourly schedule, off until you switch it on, is for places where sensors are off.",
    add_arguments=_add_arguments,
    run=_run,
)
