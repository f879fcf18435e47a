"""A home of its own for every test, empty or published already."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from tests.pipeline.store.lake_rows import accelerators, together, unit


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(str(tmp_path / "home"))


@pytest.fixture
def lake(home: Home) -> Lake:
    return Lake(home)


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home whose store shows the units a and b; for tests that only read."""
    home = Home.resolve(str(tmp_path_factory.mktemp("shown") / "home"))
    Lake(home).commit(together([unit("a"), unit("b"), accelerators("H100")]))
    publish(home)
    return home


@pytest.fixture
def published(shown: Home, home: Home) -> Home:
    """The same as a home of the test's own."""
    shutil.copytree(shown.path, home.path, symlinks=True, dirs_exist_ok=True)
    return home
