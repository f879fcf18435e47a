"""A real store, a real server and a real Chromium, shared by the browser tests of one worker."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.evidence import evidence
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


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install Debian's chromium, or set CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


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


def sweepscope(*args: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sweepscope", *map(str, args)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def built_once(tmp_path_factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """A folder that the first worker to ask for it builds, and that the others then read."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(folder)
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard after `sweepscope demo`."""
    folder = built_once(
        tmp_path_factory, "demo", lambda folder: sweepscope("demo", "--no-serve", "--home", folder / "home")
    )
    yield from serve(folder / "home")


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
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard over rows of memory and network: findings, hangs, a topology, peaks and a snapshot."""
    yield from serve(make_real_home(tmp_path_factory.mktemp("told") / "home", **evidence()))


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard before anything was ingested."""
    yield from serve(tmp_path_factory.mktemp("empty"))
