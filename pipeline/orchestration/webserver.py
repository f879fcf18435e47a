"""Dagster's webserver behind the checks of `web_access`, and read-only unless it is started with `launch`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

import dagster as dg
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster_webserver.app import create_app_from_workspace_process_context

from sweepscope.pipeline.io.children import end_with_parent
from sweepscope.pipeline.io.web_access import Access, Guard
from sweepscope.pipeline.orchestration.instance import LOCATION

_JSON = "application/json"


def main(host: str, port: str, mode: str = "read-only") -> None:
    """Serve until the parent process ends; `mode` is "read-only" or "launch"."""
    end_with_parent()
    logging.getLogger("dagster").setLevel(logging.ERROR)
    target = ModuleTarget(LOCATION, attribute=None, working_directory=None, location_name=None)
    with (
        dg.DagsterInstance.get() as instance,
        WorkspaceProcessContext(
            instance,
            version=dg.__version__,
            read_only=mode != "launch",
            workspace_load_target=target,
            code_server_log_level="error",
        ) as context,
    ):
        app = create_app_from_workspace_process_context(context)
        uvicorn.run(Guard(app, Access.from_environment(), refusal), host=host, port=int(port), log_level="error")


def refusal(method: str, path: str, headers: Mapping[str, str]) -> str | None:
    """Why a request is refused whose answer could change something without the visitor's will.

    The webserver takes mutations by GET and in the query of a POST, both of which any page can have a browser send,
    and events of assets by POST, even where it is read-only. Its own pages send JSON to `/graphql`.
    """
    route, _, query = path.partition("?")
    if method in ("GET", "HEAD"):
        is_query = route.rstrip("/").endswith("/graphql") and "query=" in query
        return "Queries are sent by POST." if is_query else None
    is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == _JSON
    if method == "POST" and route.rstrip("/") == "/graphql" and is_json and "query=" not in query:
        return None
    return f"{method} is not for this address; queries are sent to /graphql as JSON."


if __name__ == "__main__":
    main(*sys.argv[1:])
