"""Examples in the docstrings of schemas and pipeline run, and run in every module that has some."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("schemas", "pipeline")
    for path in (ROOT / package).rglob("*.py")
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted
    assert not done.failed


def test_there_are_examples() -> None:
    assert {"pipeline.text.quantities", "pipeline.text.timestamps", "schemas.core.ddl"} <= set(MODULES)
