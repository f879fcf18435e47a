"""`sweepscope serve PATH...`: watch and dashboard together."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.commands.dashboard import add_dashboard_arguments
from sweepscope.pipeline.commands.output import note, say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.commands.watch import add_watch_arguments, start_dagster, watching_text
from sweepscope.pipeline.ingest.dialect_files import remember
from sweepscope.pipeline.ingest.plan import awaited
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.watcher import watching


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_watch_arguments(parser)
    add_dashboard_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home)
    remember(home, args.dialect)
    waiting = awaited(args.paths)
    with watching(home, args.paths, on_wait=note) as shared:
        servers.check_port(args.port, args.host)
        servers.check_port(args.dagster_port, args.host, "--dagster-port")
        access = servers.access_of(args)
        note("Starting the dashboard ...")
        page = servers.page_url(args.host, args.port)
        dashboard = servers.dashboard_process(home, args.port, args.host, access, inherited=[shared.handle])
        runs, (webserver, daemon) = start_dagster(args, home, access, shared)
        shared.note([process.pid for process in (dashboard, webserver, daemon)])
        value = {
            "dashboard": page,
            "dagster": runs,
            "watching": args.paths,
            "waiting_for": waiting,
            "home": str(home.path),
        }
        watched = watching_text(args.paths, waiting, args.every)
        text = f"Dashboard: {page}\nDagster:   {runs}\n{watched}  (stop with Ctrl-C)"
        addresses = {page: dashboard, runs: webserver}
        return servers.serve(addresses, lambda: say_result(value, text, as_json=args.json), [daemon])


VERB = Verb(
    name="serve",
    description="Ingest new runs as they appear and serve the dashboard.",
    add_arguments=_add_arguments,
    run=_run,
)
