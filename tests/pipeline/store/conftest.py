"""A home of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(str(tmp_path / "home"))


@pytest.fixture
def lake(home: Home) -> Lake:
    return Lake(home)
