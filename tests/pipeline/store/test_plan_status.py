"""The view `plan_status`: which run fills a planned one, by name or by layout, and what differs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb
import polars as pl

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.schemas.tables.plans import PLANNED_RUNS
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS
from tests.run_rows import completed_frame, open_store, run_row

LAYOUT = {"dp": 8, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 1, "zero_stage": 0, "dp_replicate": 1, "mbs": 2}


def planned_row(position: int = 1, **changes: Any) -> dict[str, Any]:
    """A planned run of the cell of `run_rows.run_row`, with its layout."""
    return {
        "plan_id": "plan-0a1b2c",
        "planned_run_id": f"plan-0a1b2c-{position:03}",
        "position": position,
        "purpose": "best",
        "framework": "nanotron",
        "accelerator": "H100-SXM-80GB",
        "num_nodes": 1,
        "gpus_per_node": 8,
        "num_gpus": 8,
        "model": "Llama 1.34B",
        "seq_len": 4096,
        **LAYOUT,
        "gas": 16,
        "gbs": 256,
        "gbs_tokens": 1_048_576,
        "recompute": "none",
        "believed_step_time_s": 4.0,
        **changes,
    }


def status_of(store: duckdb.DuckDBPyConnection, *planned: dict[str, Any]) -> list[dict[str, Any]]:
    rows = validate(PLANNED_RUNS, pl.DataFrame(planned, infer_schema_length=None))
    assert rows.rejects.is_empty()
    fill(store, "planned_runs", rows.valid)
    return store.sql("SELECT * FROM plan_status ORDER BY position").pl().to_dicts()


def fill(store: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame) -> None:
    store.execute(f"INSERT INTO {table} SELECT * FROM rows")


def test_a_run_with_the_name_in_its_path_fills_the_planned_one() -> None:
    runs = completed_frame(
        run_row("a", source_path="/sweep/plan-0a1b2c-001/train.log", step_time_s=5.0),
        run_row("b", source_path="/sweep/plan-0a1b2c-002/train.log", status="oom"),
        run_row("c", source_path="/sweep/plan-ffffff-003/train.log"),
    )
    one, two, three = status_of(open_store(runs), planned_row(1), planned_row(2), planned_row(3))
    assert (one["plan_outcome"], one["matched_by"], one["run_id"]) == ("completed", "name", "a")
    assert one["step_time_over_predicted"] == 1.25
    assert one["layout_differs"] is None
    assert (two["plan_outcome"], two["status"], two["is_mended"]) == ("failed", "oom", False)
    assert (three["plan_outcome"], three["run_id"], three["is_mended"]) == ("missing", None, None)


def test_of_several_attempts_the_completed_one_counts() -> None:
    path = "/sweep/plan-0a1b2c-001/train.log"
    runs = completed_frame(
        run_row("a", source_path=path, status="completed", started_at=datetime(2026, 1, 1)),
        run_row("b", source_path=path, status="crash", attempt=2, started_at=datetime(2026, 1, 2)),
    )
    (row,) = status_of(open_store(runs), planned_row())
    assert (row["run_id"], row["plan_attempts"]) == ("a", 2)


def test_a_name_counts_more_than_the_layout_and_what_differs_is_named() -> None:
    runs = completed_frame(
        run_row("other", dp=4, tp=2, gas=32, run_dir="/sweep/plan-0a1b2c-001"), run_row("same", dp=8, gas=16)
    )
    (row,) = status_of(open_store(runs), planned_row())
    assert (row["run_id"], row["matched_by"]) == ("other", "name")
    assert row["layout_differs"] == "dp 4 instead of 8, tp 2 instead of 1, gas 32 instead of 16"


def test_a_run_of_the_cell_with_the_layout_fills_it_without_a_name() -> None:
    runs = completed_frame(run_row("same", dp=8, gas=16, cp=None), run_row("published", origin="published"))
    one, other = status_of(open_store(runs), planned_row(1), planned_row(2, dp=4, tp=2, gas=32))
    assert (one["run_id"], one["matched_by"]) == ("same", "layout")
    assert other["plan_outcome"] == "missing"


def test_the_name_of_a_job_counts_where_no_path_has_it() -> None:
    store = open_store(completed_frame(run_row("a", job_id="77", source_path="/elsewhere/slurm-77.out")))
    jobs = {"source_path": "/acct", "line_no": 1, "job_id": "77", "job_name": "plan-0a1b2c-001", "scheduler": "slurm"}
    fill(store, "scheduler_jobs", SCHEDULER_JOBS.conform(pl.DataFrame([jobs])))
    (row,) = status_of(store, planned_row())
    assert (row["run_id"], row["matched_by"]) == ("a", "name")


def test_a_failure_is_mended_once_the_run_in_its_place_completed() -> None:
    runs = completed_frame(
        run_row("a", run_dir="/s/plan-0a1b2c-001", status="oom"),
        run_row("b", run_dir="/s/plan-0a1b2c-002", mbs=1, gas=32),
    )
    first, second = status_of(
        open_store(runs),
        planned_row(1),
        planned_row(2, mbs=1, gas=32, mends="plan-0a1b2c-001", plan_change="mbs 2 to 1"),
    )
    assert first["is_mended"] is True
    assert second["plan_outcome"] == "completed"


def test_a_failure_is_mended_also_by_what_mends_its_first_mend() -> None:
    runs = completed_frame(
        run_row("a", run_dir="/s/plan-0a1b2c-001", status="oom"),
        run_row("b", run_dir="/s/plan-0a1b2c-002", status="oom"),
        run_row("c", run_dir="/s/plan-0a1b2c-003", mbs=1, gas=32),
    )
    rows = status_of(
        open_store(runs),
        planned_row(1),
        planned_row(2, mends="plan-0a1b2c-001", plan_change="expandable segments"),
        planned_row(3, mbs=1, gas=32, mends="plan-0a1b2c-002", plan_change="mbs 2 to 1"),
        planned_row(4),
    )
    assert [row["is_mended"] for row in rows] == [True, True, None, None]


def test_a_trial_on_a_cpu_gives_way_to_a_run_on_the_accelerator() -> None:
    trial = run_row("t", run_dir="/trial/plan-0a1b2c-001", accelerator="CPU", step_time_s=80.0)
    (alone,) = status_of(open_store(completed_frame(trial)), planned_row())
    assert (alone["run_id"], alone["is_trial"], alone["step_time_over_predicted"]) == ("t", True, None)
    failed = run_row("a", run_dir="/s/plan-0a1b2c-001", status="oom")
    (both,) = status_of(open_store(completed_frame(trial, failed)), planned_row())
    assert (both["run_id"], both["is_trial"], both["layout_differs"]) == ("a", False, None)
