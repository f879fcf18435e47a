"""`sweepscope export`: what the dashboard says as static pages, or the tables as a dataset for the Hugging Face Hub."""

from __future__ import annotations

import argparse
from pathlib import Path

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.dashboard_process import written
from sweepscope.pipeline.commands.output import note, say_read
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.store.home import Home
from sweepscope.schemas.vocab import ORIGIN

RUNS, GRIDS = 200, 20


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--static", metavar="DIR", help="folder for pages; an earlier export in it is replaced")
    kinds.add_argument(
        "--dataset",
        metavar="DIR",
        help="folder for Parquet files of all tables and a dataset card, for the Hugging Face Hub",
    )
    parser.add_argument("--origin", choices=tuple(ORIGIN), help="whose runs (default: all that the dashboard shows)")
    parser.add_argument(
        "--runs",
        type=count,
        default=RUNS,
        metavar="N",
        help="runs with a page of their own, winners first, then the newest (default: %(default)s)",
    )
    parser.add_argument(
        "--grids",
        type=count,
        default=GRIDS,
        metavar="N",
        help="grids of an origin, and pairs of winner and runner-up, with a page of their own, those with most results "
        "first (default: %(default)s)",
    )


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home, for_writing=False)
    if args.dataset:
        return _write_dataset(home, args)
    note("Writing the pages ...")
    found = written(
        "report.write_site", home, str(Path(args.static).absolute()), args.origin or "", str(args.runs), str(args.grids)
    )
    pages = ", ".join(f"{number:,} of {origin} runs" for origin, number in found["origins"].items())
    size = f"{found['bytes'] / 2**20:.1f} MiB"
    say_read(found, f"Pages: {pages}\nSite: {found['site']}  ({size}, opens without a network)", as_json=args.json)
    return 0


def _write_dataset(home: Home, args: argparse.Namespace) -> int:
    from sweepscope.pipeline.store.dataset import write_dataset
    from sweepscope.pipeline.store.published import connect, current

    folder = Path(args.dataset).absolute()
    with connect(current(home.path)) as connection:
        rows = write_dataset(connection, folder, origin=args.origin)
    text = f"{sum(rows.values()):,} rows of {len(rows)} tables\nDataset: {folder}  (README.md is its card)"
    say_read({"dataset": str(folder), "rows": rows}, text, as_json=args.json)
    return 0


VERB = Verb(
    name="export",
    description="Write the store as static pages that need no server and no network: overview, every grid in every "
    "metric, winners against their runners-up, failures and their cost, memory, network, distance to theory, frontier, "
    "runs with their evidence lines, and the rows as Parquet. Charts are saved as PNG or SVG with their filters "
    "printed in. Or, with --dataset, every table as Parquet with a card that describes it, as the "
    "Hugging Face Hub takes datasets.",
    add_arguments=_add_arguments,
    run=_run,
)
