"""A real store, a real server and a real Chromium, shared by the browser tests of one worker."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.evidence import evidence
from tests.conftest import built_once, sweepscope
from tests.dashboard.store_rows import make_real_home
from tests.picotron_runs import OOM_TAIL, picotron_run

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

# Without the background flags Chromium looks up its vendor's hosts at every start; tests talk to loopback only.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(home: Path) -> Iterator[str]:
    """Address of a dashboard over `home`, stopped at the end."""
    from sweepscope.pipeline.commands.servers import dashboard_process, stop_all, wait_until_served
    from sweepscope.pipeline.store.home import Home

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = dashboard_process(Home.resolve(str(home)), port, "127.0.0.1")
    wait_until_served({url: process})
    yield url
    stop_all([process])


@pytest.fixture(scope="session")
def demo(demo_home: Path) -> Iterator[str]:
    """The dashboard after `sweepscope demo`."""
    yield from serve(demo_home)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard after ingesting a small sweep of one's own."""

    def build(folder: Path) -> None:
        for dp, speed in ((1, 4000.0), (2, 7600.0), (4, 14000.0)):
            picotron_run(folder / "sweep", dp=dp, gas=8 // dp, tokens_per_s=speed)
        picotron_run(folder / "sweep", dp=8, gas=1, steps=1, status="oom", tail=OOM_TAIL)
        sweepscope("ingest", folder / "sweep", "--home", folder / "home")

    yield from serve(built_once(tmp_path_factory, "own", build) / "home")


@pytest.fixture(scope="session")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard over rows of memory and network: findings, hangs, a topology, peaks and a snapshot."""
    yield from serve(make_real_home(tmp_path_factory.mktemp("diagnosed") / "home", **evidence()))


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard before anything was ingested."""
    yield from serve(tmp_path_factory.mktemp("empty"))
