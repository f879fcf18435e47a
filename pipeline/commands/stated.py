"""`sweepscope stated`: what the user states of runs whose logs do not say it."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.ingest.statements import beside, of_home
from sweepscope.pipeline.store.home import Home


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", help="list what sweepscope.toml files beside or above these state, too"
    )


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home, for_writing=False)
    found = [*of_home(home), *beside(args.paths)]
    value = [
        {"folder": one.folder, "match": one.match or None, "override": one.is_override, "file": one.file, **one.values}
        for one in found
    ]
    lines = [
        (
            f"{one.folder}/{one.match}" if one.match else one.folder,
            ", ".join(f"{name} = {text}" for name, text in one.values.items())
            + (" (overrides logs)" if one.is_override else "")
            + f"  [{one.file}]",
        )
        for one in found
    ]
    nothing = "Nothing is stated. `sweepscope ingest PATH --set NAME=VALUE` states what the logs at PATH do not say."
    say_result(value, table(lines) if lines else nothing, as_json=args.json)
    return 0


VERB = Verb(
    name="stated",
    description="List the statements of the home (`ingest --set`, Data health) and of sweepscope.toml files. Withdraw "
    "one with `ingest PATH --unset NAME`.",
    add_arguments=_add_arguments,
    run=_run,
)
