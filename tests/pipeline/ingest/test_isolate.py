"""A fault of ours in reading one file: the others are read as if it were not there, and nothing is forgotten."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, parse_batch, validate_batch
from sweepscope.pipeline.ingest.isolate import isolated
from tests.picotron_runs import picotron_run
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.logs.runs.test_assemble import log

NOW = datetime(2035, 1, 1)


@pytest.fixture
def found(tmp_path: Path) -> pl.DataFrame:
    for dp in (1, 2, 4, 8, 16):
        picotron_run(tmp_path / "sweep", dp=dp)
    return plan.find([str(tmp_path)])


def failing(parts: pl.DataFrame, *, unit: str, seen: list[int]) -> Tables:
    """`parse_batch`, which fails where that unit is."""
    seen.append(parts["unit"].n_unique())
    if unit in parts["unit"]:
        raise TypeError("unexpected value\nof type Int128")
    return parse_batch(parts, now=NOW)


def test_other_units_are_read_as_without_it(found: pl.DataFrame) -> None:
    bad = found["unit"].unique().sort()[3]
    seen: list[int] = []
    tables = isolated(found, partial(failing, unit=bad, seen=seen))
    without = parse_batch(found.filter(pl.col("unit") != bad), now=NOW)
    assert tables["runs"].sort("run_id").equals(without["runs"].sort("run_id"))
    assert tables["runs"].height == 4
    assert seen[0] == 5
    assert len(seen) <= 8
    rows = tables["files"].filter(unit=bad)
    assert rows["status"].unique().to_list() == ["rejected"]
    path = rows["path"][0]
    assert rows["error"][0] == (
        f"Cannot read {path}: its reader failed (TypeError: unexpected value). Please report it."
    )
    valid = validate_batch(tables)
    assert valid["files"].height == found.height
    assert plan.plan(found, valid["files"], valid["runs"], now=NOW).is_empty(), "it is not tried again by every tick"


def test_errors_that_a_user_can_mend_are_told(found: pl.DataFrame) -> None:
    def full(_parts: pl.DataFrame) -> Tables:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError):
        isolated(found, full)


def test_a_sidecar_whose_numbers_are_beyond_any_costs_no_other_file() -> None:
    huge = f'{{"global_step": 1, "max_steps": 2, "log_history": [{{"step": 1, "loss": {"9" * 400}}}]}}'
    files = batch_of({"r/trainer_state.json": huge, "s/train.log": log(1, 3)}).files
    assert files["status"].to_list()[1] == "parsed"
    assert "trainer_state.json" in str(files["error"][0]) or files["status"][0] == "parsed"
