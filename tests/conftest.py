"""Settings that every test shares."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No deadline: how long one example takes says more about the machine's other users than about the code. By hand every
# run tries new examples; in continuous integration the same ones, so that a failure is the change's own.
settings.register_profile("default", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("default")

# Where single tests take seconds: they start processes, ingest whole sweeps, or drive a browser.
_LONG = {
    "app_pages",
    "browser",
    "commands",
    "ingest",
    "inspection",
    "orchestration",
    "sandbox",
    "simulate",
    "store",
    "test_corpus.py",
    "test_damage.py",
    "test_distribution.py",
    "test_scaffold.py",
    "validation",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that take long are `slow`, and go first: no worker has one of them left when the others are done."""
    for item in items:
        if not _LONG.isdisjoint(item.path.parts):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
