"""`sweepscope dashboard`: serve the dashboard over the published store."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.store.home import Home


def add_dashboard_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--port` and what decides who can open the page."""
    parser.add_argument(
        "--port", type=int, default=servers.DASHBOARD_PORT, help="dashboard port (default: %(default)s)"
    )
    servers.add_host_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home, for_writing=False)
    servers.check_port(args.port, args.host)
    process = servers.dashboard_process(home, args.port, args.host, servers.access_of(args))
    url = servers.page_url(args.host, args.port)
    value, text = {"dashboard": url, "home": str(home.path)}, f"Dashboard: {url}  (stop with Ctrl-C)"
    return servers.serve({url: process}, lambda: say_result(value, text, as_json=args.json))


VERB = Verb(
    name="dashboard",
    description="Serve the dashboard over the published store. It never writes to the store.",
    add_arguments=add_dashboard_arguments,
    run=_run,
)
