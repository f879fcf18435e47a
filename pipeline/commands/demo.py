"""`sweepscope demo`: ingest the bundled data through the real graph, then serve the dashboard."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
from pathlib import Path

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.commands.dashboard import add_dashboard_arguments
from sweepscope.pipeline.commands.ingest import as_dict, as_text, ingest_with_progress
from sweepscope.pipeline.commands.output import note, say, say_json, say_result
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home

DEMO_RUNS = 120
FIRST_QUERY = (
    "select model, num_nodes, layout, round(100 * mfu, 1) as mfu_pct, round(100 * margin, 1) as lead_pct "
    "from best_configs where origin = 'published' and seq_len = 4096 and gbs_tokens = 1048576 "
    "order by params, num_nodes"
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dashboard_arguments(parser)
    parser.add_argument("--no-serve", action="store_true", help="ingest only")


def _run(args: argparse.Namespace) -> int:
    begin = time.perf_counter()
    home = Home.resolve(args.home)
    access = servers.access_of(args)
    if not args.no_serve:
        servers.check_port(args.port, args.host)
    sweep = demo_sweep(home.path)
    note("Ingesting the bundled published results and a simulated sweep ...")
    summary = ingest_with_progress(home, [str(sweep)])
    if not args.json:
        say(as_text(summary))
    if args.no_serve:
        if args.json:
            say_json(as_dict(summary))
        return 0
    process = servers.dashboard_process(home, args.port, args.host, access)
    url = servers.page_url(args.host, args.port)

    def announce() -> None:
        seconds = time.perf_counter() - begin
        value = {**as_dict(summary), "dashboard": url, "seconds_to_page": round(seconds, 1)}
        ready = f"\nDashboard  {url}   ready in {seconds:.1f} s; stop with Ctrl-C"
        where = f" --home {shlex.quote(args.home)}" if args.home else ""
        first = f'Try        {sys.argv[0]} query{where} "{FIRST_QUERY}"'
        say_result(value, f"{ready}\n{first}", as_json=args.json)

    return servers.serve({url: process}, announce)


def demo_sweep(folder: Path) -> Path:
    """The simulated sweep in `folder`, written on the first call; whole or not there."""
    sweep, unfinished = folder / "demo-sweep", folder / ".demo-sweep"
    if not sweep.exists():
        note("Writing a small simulated sweep, failures included ...")
        shutil.rmtree(unfinished, ignore_errors=True)
        write_sweep(unfinished, runs=DEMO_RUNS, seed=1, evidence=True).rename(sweep)
    return sweep


VERB = Verb(
    name="demo",
    description="Ingest the bundled published sweeps and a small simulated one through the same graph as your own "
    "logs, then serve the dashboard.",
    add_arguments=_add_arguments,
    run=_run,
)
