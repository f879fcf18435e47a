"""Examples in docstrings run, and every module that has some is found."""

from __future__ import annotations

import doctest
import importlib
import re

from tests.layers import MODULES

# Pages run when they are imported; they have tests of their own.
WITH_EXAMPLES = sorted(
    f"sweepscope.{name}"
    for name, path in MODULES.items()
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE) and ".app_pages." not in name
)


def test_examples() -> None:
    done = {name: doctest.testmod(importlib.import_module(name)) for name in WITH_EXAMPLES}
    assert not [name for name, result in done.items() if not result.attempted]
    assert not [name for name, result in done.items() if result.failed]


def test_there_are_examples() -> None:
    expected = ("pipeline.text.quantities", "pipeline.text.timestamps", "schemas.core.ddl", "dashboard.format.numbers")
    assert {f"sweepscope.{name}" for name in expected} <= set(WITH_EXAMPLES)
