"""The dashboard's server process: Streamlit behind the checks of `web_access`, started by `sweepscope dashboard`."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from uuid import uuid4

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Mount
from streamlit.starlette import App

from sweepscope.dashboard.app import api, compressed, editing, frontend
from sweepscope.dashboard.app.compressed import CompressedStatic
from sweepscope.dashboard.app.document import Document
from sweepscope.dashboard.app.monitoring import Monitoring
from sweepscope.dashboard.app.rehearsal import Readers, Seen, rehearse
from sweepscope.dashboard.navigation import PAGES
from sweepscope.pipeline.io import event_log
from sweepscope.pipeline.io.children import end_with_parent
from sweepscope.pipeline.io.web_access import Access, Guard
from sweepscope.pipeline.store.home import Home

_LOG = logging.getLogger(__name__)
_STATIC = Path(st.__file__).parent / "static" / "static"
_SCRIPT = Path(__file__).parent.parent / "streamlit_app.py"
_OF_MOST_PAGES = ("index", "protobuf", "StreamlitMarkdown", "arrowFormatUtils", "DataFrame", frontend.CHARTS)
"""The larger scripts of the frontend that a page with a table and a chart asks for."""
_QUICK = frozenset({"plans", "node", "live", "runs", "sql", "health"})
"""Files of pages that cost a first reader less than half a second, and the server memory if they were run before."""
_ROOMS = ("queries", "view_models", "text", "charts", "widgets", "sections")
"""By name, as the pages themselves are loaded: what draws them lies above this module."""


def main(host: str, port: str) -> None:
    """Serve until the parent process ends."""
    event_log.configure()
    end_with_parent()
    # Streamlit looks for its theme, .streamlit/config.toml, beside the program that was started.
    sys.argv = [str(_SCRIPT)]
    access, home = Access.from_environment(), Home.resolve(None, for_writing=False)
    editing.allow(host, access)
    seen = Seen()

    @asynccontextmanager
    async def lifespan(_: App) -> AsyncIterator[None]:
        preparing = asyncio.create_task(_prepare(seen), name="prepare")
        yield
        preparing.cancel()

    app = App(
        _SCRIPT,
        lifespan=lifespan,
        routes=[Mount(api.PATH, api.api(home))],
        middleware=[
            Middleware(Monitoring, home=home, access=access),
            Middleware(Guard, access=access),
            Middleware(Readers, seen=seen),
            Middleware(CompressedStatic, root=_STATIC),
            Middleware(Document, tags=partial(frontend.tags, _STATIC)),
        ],
        on_script_error=_say_briefly,
    )
    app.run(
        config={
            "server.port": int(port),
            "server.address": host,
            "server.headless": True,  # no browser window, no e-mail prompt on the first run
            "server.fileWatcherType": "none",  # an installed package does not change under a running server
            "browser.gatherUsageStats": False,
            # Else Streamlit asks a service on the internet for this machine's public address, to greet with it.
            "browser.serverAddress": "localhost",
            # The guard judges where requests come from; Streamlit would look up the same address for that.
            "server.enableCORS": False,
            "server.enableXsrfProtection": False,
            "client.showErrorDetails": "none",
            "client.toolbarMode": "viewer",
            "logger.level": "warning",
            "runner.magicEnabled": False,  # no page shows a value by naming it; each would be parsed for that
        }
    )


async def _prepare(seen: Seen) -> None:
    """Does before the first reader comes what the first page would wait for: modules, compression, caches."""
    try:
        await asyncio.to_thread(_load_pages)
        _take_as_lasting()
        pages = [entry.url for entry in PAGES if not entry.is_hidden and entry.file not in _QUICK]
        await rehearse(["", *pages[1:]], seen.is_at_work)
        _take_as_lasting()
    except Exception:
        _LOG.exception("event=preparation_failed")  # pages are drawn as well without it, only later


def _take_as_lasting() -> None:
    """Leaves what is in memory now, modules and caches, out of later garbage collections.

    Streamlit collects after each run of a script, in which nothing else of the process goes on: a quarter of a second
    over all modules, which the page's last messages wait for.
    """
    gc.collect()
    gc.freeze()


def _load_pages() -> None:
    """Imports what the pages import, all of it apart from the pages, which are scripts; compresses what they need."""
    for room in _ROOMS:
        package = import_module(f"sweepscope.dashboard.{room}")
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for name in _OF_MOST_PAGES:
        compressed.compress(_STATIC, f"js/{name}.*.js")


def _say_briefly(error: Exception) -> bool:
    """Show visitors that a page failed, and the terminal why: a traceback tells of paths and versions."""
    reference = uuid4().hex[:8]
    _LOG.error("event=page_failed reference=%s", reference, exc_info=error)
    st.error(
        f"This page could not be drawn ({type(error).__name__}, reference {reference}). "
        "The terminal in which the dashboard runs says why."
    )
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
