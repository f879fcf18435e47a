"""The examples in the dashboard's docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from sweepscope import dashboard

# Pages run when they are imported; they have tests of their own.
_MODULES = [
    info.name
    for info in pkgutil.walk_packages(dashboard.__path__, "sweepscope.dashboard.")
    if not info.ispkg and info.name != "sweepscope.dashboard.streamlit_app" and ".app_pages." not in info.name
]


@pytest.mark.parametrize("name", _MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
