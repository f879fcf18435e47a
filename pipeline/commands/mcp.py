"""`sweepscope mcp`: the store as tools for agents, over stdin and stdout."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec

from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.io.children import import_path
from sweepscope.pipeline.store.home import Home

_MODULE = "sweepscope.dashboard.app.mcp_server"


def _add_arguments(_: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def _run(args: argparse.Namespace) -> int:
    if find_spec("mcp") is None:
        raise UsageError("`sweepscope mcp` needs the MCP SDK: pip install 'sweepscope[mcp]'.")
    home = Home.resolve(args.home, for_writing=False)
    # By name, and in the place of this process: the dashboard lies above the command line, and a client that ends
    # what it started ends the server.
    environment = {
        **os.environ,
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(import_path()),
        "SWEEPSCOPE_HOME": str(home.path),
    }
    os.execve(sys.executable, [sys.executable, "-P", "-m", _MODULE], environment)  # noqa: S606 -- our own module


VERB = Verb(
    name="mcp",
    description="A read-only MCP server over stdin and stdout, for agents: best configurations, scaling, failures "
    "and their cost, what to run next, estimates, searches, and sandboxed SQL. Clients start it: "
    "for example `claude mcp add sweepscope -- sweepscope mcp --home DIR`. Needs pip install 'sweepscope[mcp]'.",
    add_arguments=_add_arguments,
    run=_run,
)
