"""The questions of `dashboard.answers` as tools of the Model Context Protocol, over stdin and stdout.

Started by `sweepscope mcp`: `python -m sweepscope.dashboard.app.mcp_server`. Clients end it by closing its stdin.
"""

from __future__ import annotations

import functools
from importlib.metadata import version

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from sweepscope.dashboard.answers.answer import Answer
from sweepscope.dashboard.answers.questions import GUIDE, Question, questions
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.io import event_log
from sweepscope.pipeline.store.home import Home

_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def server(home: Home) -> MCPServer[None]:
    """The server over the store of a home. It need not have one yet: each call opens the version that is current."""
    made: MCPServer[None] = MCPServer(
        "sweepscope", title="sweepscope", version=version("sweepscope"), instructions=GUIDE, log_level="WARNING"
    )
    for question in questions(home.path):
        made.add_tool(_as_tool(question), annotations=_READS)
    return made


def _as_tool(question: Question) -> Question:
    """The question with errors that a model reads: what was wrong and what to do, without a traceback."""

    @functools.wraps(question)
    def ask(*args: object, **given: object) -> Answer:
        try:
            return question(*args, **given)
        except SweepscopeError as error:
            raise ToolError(str(error)) from error

    return ask


def main() -> None:
    """Serve until the client closes the pipe."""
    event_log.configure()
    server(Home.resolve(None, for_writing=False)).run("stdio")


if __name__ == "__main__":
    main()
