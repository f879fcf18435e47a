"""What Overview asks of a store, on a real DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sweepscope.dashboard.queries import overview
from tests.dashboard.store_rows import run_row, write_real_store

UNKNOWN = dict.fromkeys(("num_gpus", "num_nodes", "dp", "tp", "pp", "mfu", "tokens_per_s_per_gpu"))


@pytest.mark.parametrize(("logged", "reason"), [(9e4, "number of GPUs unknown"), (None, "throughput not logged")])
def test_the_list_of_completed_runs_says_what_keeps_one_from_having_a_speed(
    tmp_path: Path, logged: float | None, reason: str
) -> None:
    path = write_real_store(tmp_path / "results-1.duckdb", runs=[run_row("mine", **UNKNOWN, tokens_per_s=logged)])
    with duckdb.connect(str(path), read_only=True) as connection:
        (row,) = overview.completed("measured").run(connection).to_dicts()
    assert row["without_speed"] == reason
