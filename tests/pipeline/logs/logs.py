"""Text to facts and runs, for tests of dialects: hand-written lines through the real front door and fold."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.ingest.read_batch import read_batch
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.facts import Facts
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.assemble import assemble
from sweepscope.pipeline.text import lines

NOW = datetime(2030, 1, 1)
Tables = dict[str, pl.DataFrame]


def facts_of(dialect: str, text: str) -> Facts:
    """What a dialect reads in one block of lines, whether or not they carry its signature."""
    block = lines.split(0, textwrap.dedent(text).encode())
    return extract.extract(block, DIALECTS, partial=[0]).readings.get(dialect, Facts.empty())


def step_of(dialect: str, line: str) -> dict[str, Any]:
    """The one step fact that a line gives."""
    steps = facts_of(dialect, line).steps
    assert steps.height == 1, steps
    return steps.row(0, named=True)


def facts_of_each(dialect: str, texts: Sequence[str]) -> list[Facts]:
    """What a dialect reads in each text, as if it were alone: every one is a file of its own, all read at once."""
    block = lines.split_many([(place, text.encode(), 1) for place, text in enumerate(texts)])
    found = extract.extract(block, DIALECTS, partial=set(range(len(texts)))).readings.get(dialect, Facts.empty())
    return [found.map(lambda frame, place=place: frame.filter(source=place)) for place in range(len(texts))]


def step_of_each(dialect: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The one step fact that each line gives."""
    found = [facts.steps for facts in facts_of_each(dialect, texts)]
    assert [steps.height for steps in found] == [1] * len(texts), found
    return [steps.drop("source").row(0, named=True) for steps in found]


def settings_of_each(dialect: str, texts: Sequence[str]) -> list[dict[str, str]]:
    """The latest value of each setting in each text."""
    return [dict(facts.settings.select("name", "value").iter_rows()) for facts in facts_of_each(dialect, texts)]


def settings_of(dialect: str, text: str) -> dict[str, str]:
    """The latest value of each setting."""
    found = facts_of(dialect, text).settings
    return dict(found.select("name", "value").iter_rows())


def tables_of(directory: Path, text: str | None = None, name: str = "train.log") -> Tables:
    """Every table that the logs below `directory` yield, after writing `text` there as one."""
    if text is not None:
        (directory / name).write_text(textwrap.dedent(text), encoding="utf-8")
    batch = read_batch(discover(list_files(str(directory)), is_simulated=lambda _place: False))
    tables = assemble(batch.sources, batch.facts, batch.spans, batch.sidecars, now=NOW)
    rows = pl.concat([tables["runs"], *batch.tables], how="diagonal_relaxed")
    rejects = pl.concat([tables["rejects"], batch.rejects])
    return {**tables, "runs": complete_runs(rows).runs, "rejects": rejects, "files": batch.files}


def run_of(directory: Path, text: str) -> dict[str, Any]:
    """The one run of one log, its known columns only."""
    runs = tables_of(directory, text)["runs"]
    assert runs.height == 1, runs
    return {name: value for name, value in runs.row(0, named=True).items() if value is not None}


def runs_of(directory: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The one run of each log, its known columns only; all logs are read as one batch."""
    for place, text in enumerate(texts):
        (directory / f"{place:03d}").mkdir()
        (directory / f"{place:03d}" / "train.log").write_text(textwrap.dedent(text), encoding="utf-8")
    runs = tables_of(directory)["runs"].sort("run_dir")
    assert runs["run_dir"].to_list() == [str(directory / f"{place:03d}") for place in range(len(texts))]
    return [{name: value for name, value in row.items() if value is not None} for row in runs.iter_rows(named=True)]
