"""Golden cases: hand-written logs of each format beside the rows they must give (see tests/golden/README.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.logs.registry import DIALECTS, TABLES
from sweepscope.pipeline.text import field_extraction
from sweepscope.pipeline.text.arrow_buffers import buffers_of
from sweepscope.pipeline.text.line_templates import template_hashes
from tests.paths import GOLDEN
from tests.pipeline.logs.logs import Tables, tables_of

_CASES = sorted(path for path in GOLDEN.glob("*/*") if path.is_dir())
# Paths and ids hang on where the case lies; versions change without a meaning.
_LEFT_OUT = {"run_id", "run_dir", "source_path", "sweep", "file", "parser_version"}


@pytest.mark.slow
@pytest.mark.parametrize("case", _CASES, ids=["/".join(case.parts[-2:]) for case in _CASES])
def test_case(case: Path) -> None:
    found = _rows(tables_of(case))
    expected = case / "expected.json"
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(json.dumps(found, indent=1, default=str, allow_nan=True) + "\n", encoding="utf-8")
    assert json.dumps(found, default=str) == json.dumps(json.loads(expected.read_text(encoding="utf-8")), default=str)


@pytest.mark.slow
def test_lines_keep_the_templates_of_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes a text has to hash it anew: values are cut where the first line of the same hash has them."""
    captures, stale = field_extraction.captures, []

    def checked(text: pl.Series, patterns: Mapping[str, str], template: pl.Series | None = None) -> pl.DataFrame:
        if template is not None:
            of_text = template_hashes(*buffers_of(text.str.strip_chars_end("\r\n"))).alias("of_text")
            texts = (
                pl.DataFrame([template.alias("template"), of_text])
                .group_by("template")
                .agg(pl.col("of_text").n_unique())
            )
            stale.extend([next(iter(patterns))] if (texts["of_text"] > 1).any() else [])
        return captures(text, patterns, template)

    monkeypatch.setattr(field_extraction, "captures", checked)
    for case in _CASES:
        tables_of(case)
    assert stale == []


def test_there_are_cases() -> None:
    assert len(_CASES) >= 10


def test_every_dialect_and_table_has_a_case() -> None:
    assert {*(d.name for d in DIALECTS), *(t.name for t in TABLES)} - {case.parent.name for case in _CASES} == set()


def _rows(tables: Tables) -> dict[str, list[dict[str, Any]]]:
    return {
        "runs": _plain(tables["runs"].sort("attempt", "line_no")),
        "steps": _plain(tables["steps"].sort("line_no", "step")),
        "events": _plain(tables["events"].sort("line_no", "kind")),
        "rejects": _plain(tables["rejects"].sort("line_no")),
    }


def _plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows without NULLs; floats to nine digits, for the last ones depend on the order of a sum."""
    return [
        {
            name: float(f"{value:.9g}") if isinstance(value, float) else value
            for name, value in row.items()
            if value is not None and name not in _LEFT_OUT
        }
        for row in frame.iter_rows(named=True)
    ]
