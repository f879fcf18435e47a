"""Settings that every test shares."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.properties import draws

# Before polars is imported: frames of tests are small, and as many workers run as the machine has cores.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

# What a developer has in the configuration folder is none of a test's options.
os.environ["XDG_CONFIG_HOME"] = os.path.join(tempfile.gettempdir(), "sweepscope-tests-have-no-configuration")

# Kept from run to run, as a developer's own is: its rows are those of the code under test, by digest.
os.environ["XDG_CACHE_HOME"] = os.path.join(tempfile.gettempdir(), "sweepscope-tests-cache")

# No deadline: how long one example takes says more about the machine's other users than about the code. By hand every
# run tries new examples; in continuous integration the same ones, so that a failure is the change's own.
settings.register_profile("default", deadline=None, derandomize="CI" in os.environ, max_examples=draws(100))
settings.load_profile("default")

# Single tests that take minutes: they begin first, so that no worker is left with one of them at the end.
_LONGEST = {"chaos", "browser", "test_shared_lake.py", "test_resume.py", "test_dask_cluster.py"}

# Where single tests take seconds: they start processes, ingest whole sweeps, or drive a browser.
_LONG = {
    "app_pages",
    "browser",
    "chaos",
    "commands",
    "ingest",
    "inspection",
    "orchestration",
    "sandbox",
    "simulate",
    "soak",
    "store",
    "test_corpus.py",
    "test_damage.py",
    "test_distribution.py",
    "test_scaffold.py",
    "validation",
}


def _reads_whole_logs(item: pytest.Item) -> bool:
    """Whether a test writes a log and takes it through discovery, reading and the fold: a tenth of a second each."""
    return "logs" in item.path.parts and "tmp_path" in getattr(item, "fixturenames", ())


_MAIN = sys.modules["__main__"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Streamlit's AppTest leaves its script as the main module, which processes that are spawned later would run."""
    sys.modules["__main__"] = _MAIN


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that take long are `slow`, and go before the others; those that take longest go first."""
    for item in items:
        if not _LONG.isdisjoint(item.path.parts) or _reads_whole_logs(item):
            item.add_marker("slow")
    items.sort(key=lambda item: (_LONGEST.isdisjoint(item.path.parts), item.get_closest_marker("slow") is None))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """One worker has all browser tests: they share one Chromium and one server per store."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no type information
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if nodeid.startswith("tests/browser/") else str(super()._split_scope(nodeid))

    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


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
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home that `sweepscope demo` fills, for tests that only read it."""
    build = lambda folder: sweepscope("demo", "--no-serve", "--home", folder / "home")  # noqa: E731
    return built_once(tmp_path_factory, "demo", build) / "home"


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One Chromium for all tests of a process: Playwright can be started once in a thread."""
    from tests.browser.conftest import CHROMIUM, FLAGS

    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install Debian's chromium, or set CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()
