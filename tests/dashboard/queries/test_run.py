"""Everything about one run, on a real DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from sweepscope.dashboard.queries import run
from tests.dashboard.store_rows import best_row, event_row, file_row, run_row, setting_row, step_rows, write_store
from tests.run_rows import completed_frame, open_store
from tests.run_rows import run_row as made_up


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Any:
    slow = [1.0] * 1205
    slow[699] = 30.0
    one, two = "/logs/b/1.out", "/logs/b/2.out"
    path: Path = write_store(
        tmp_path_factory.mktemp("store") / "results-1.duckdb",
        runs=[
            run_row("a1"),
            run_row("b1", source_path=one, run_dir="/logs/b"),
            run_row("b2", source_path=two, run_dir="/logs/b", layout="DP8", status="crash"),
            run_row("c1", source_path="/logs/b/loose.out", run_dir="/logs/b"),
            run_row("p1", origin="published"),
        ],
        steps=[*step_rows("a1"), *step_rows("b1", slow)],
        events=[
            event_row("a1", line_no=20),
            event_row("a1", line_no=10),
            *(event_row("b1", line_no=line) for line in range(1, run.MAX_EVIDENCE + 50)),
            event_row("b1", line_no=9000, kind="slowdown"),
        ],
        settings=[setting_row("a1", value="2", is_used=False, setting_source="folder_name"), setting_row("a1")],
        files=[
            file_row(one, unit="/logs/b"),
            file_row(two, unit="/logs/b"),
            file_row("/logs/b/loose.out", unit="/logs/b/loose.out"),
        ],
        accelerators=[{"accelerator": "MI300X", "memory_bytes": 206_158_430_208}],
        ranked_layouts=[
            best_row("w", rank_in_cell=1, layout="DP4", tokens_per_s_per_gpu=8000.0),
            best_row("a1", rank_in_cell=2, recompute="none"),
            best_row("x", rank_in_cell=1, num_nodes=99),
        ],
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def test_a_run_brings_its_cards_memory(con: Any) -> None:
    assert run.run("a1").run(con)["memory_bytes"].to_list() == [206_158_430_208]
    assert run.run("none").run(con).is_empty()


def test_steps_of_a_short_run_are_as_logged(con: Any) -> None:
    steps = run.steps("a1").run(con)
    assert steps["step_time_s"].to_list() == [58.6, 2.87, 2.93, 2.91, 2.9, 2.92]
    assert steps["place"].to_list() == [1, 2, 3, 4, 5, 6]
    assert set(steps["steps_in_row"]) == {1}


def test_steps_of_a_long_run_become_medians_that_still_name_the_slowest(con: Any) -> None:
    steps = run.steps("b1").run(con)
    assert steps.height <= run.MAX_POINTS + 1
    assert steps["steps_in_row"].sum() == 1205
    assert steps["steps_in_row"][0] == 1
    assert steps["step_time_s"].max() == 1.0
    slowest = steps.sort("step_time_max_s", descending=True).row(0, named=True)
    assert (slowest["step_time_max_s"], slowest["slowest_step"]) == (30.0, 700)
    assert run.all_steps("b1").run(con).height == 1205


def test_evidence_comes_in_file_order_with_its_number(con: Any) -> None:
    evidence = run.evidence("a1").run(con)
    assert evidence["line_no"].to_list() == [10, 20]
    assert evidence["found"].to_list() == [2, 2]


def test_of_many_lines_a_health_finding_is_among_those_shown(con: Any) -> None:
    evidence = run.evidence("b1").run(con)
    assert evidence.height == run.MAX_EVIDENCE
    assert evidence["line_no"].to_list() == [*range(1, run.MAX_EVIDENCE), 9000]
    assert set(evidence["found"]) == {run.MAX_EVIDENCE + 50}


def test_the_value_in_use_comes_before_the_ones_that_contradict_it(con: Any) -> None:
    assert run.settings("a1").run(con)["value"].to_list() == ["1", "2"]


def test_place_is_looked_up_in_the_runs_own_cell(con: Any) -> None:
    place = run.place_in_cell("a1").run(con).row(0, named=True)
    assert (place["rank_in_cell"], place["layouts_completed"], place["winner_run_id"]) == (2, 2, "w")


def test_a_run_has_the_rank_of_its_own_layout_whatever_looks_like_it() -> None:
    unknown = {"dp": None, "tp": None, "pp": None, "cp": None, "gas": None, "mbs": None, "layout": None}
    rows = [
        made_up("1f1b", tokens_per_s_per_gpu=400.0, pipeline_schedule="1f1b"),
        made_up("afab", tokens_per_s_per_gpu=300.0, pipeline_schedule="afab"),
        made_up("sharded", tokens_per_s_per_gpu=250.0, pipeline_schedule="afab", sequence_parallel=True),
        made_up("u1", tokens_per_s_per_gpu=200.0, **unknown),
        made_up("u2", tokens_per_s_per_gpu=100.0, **unknown),
    ]
    with open_store(completed_frame(*rows)) as store:
        ranks = [run.place_in_cell(row["run_id"]).run(store)["rank_in_cell"].item() for row in rows]
    assert ranks == [1, 2, 3, 4, 5]


def test_a_run_brings_what_its_out_of_memory_lines_say_of_the_card() -> None:
    texts = [
        f"CUDA out of memory. Tried to allocate 2.00 GiB (GPU {gpu}; 39.59 GiB total capacity; {held - 1} GiB already "
        f"allocated; 0.50 GiB free; {held} GiB reserved in total by PyTorch)"
        for gpu, held in ((0, 37), (1, 38))
    ]
    lines = [event_row("a1", line_no=line, kind="oom", text=text) for line, text in enumerate(texts, 1)]
    events = pl.DataFrame(lines, schema_overrides={"rank": pl.Int64, "host": pl.String})
    with open_store(completed_frame(made_up("a1", status="oom"), made_up("b1")), events=events) as store:
        (oom,), (other,) = (run.run(run_id).run(store).to_dicts() for run_id in ("a1", "b1"))
    assert oom["oom_capacity_bytes"] == pytest.approx(39.59 * 2**30)
    assert oom["oom_reserved_bytes"] == 38 * 2**30
    assert (other["oom_capacity_bytes"], other["oom_reserved_bytes"]) == (None, None)


@pytest.mark.parametrize("run_id", ["b2", "none"])
def test_a_run_that_did_not_complete_has_no_place(con: Any, run_id: str) -> None:
    assert run.place_in_cell(run_id).run(con).is_empty()


def test_attempts_share_a_unit_of_ingest_and_not_merely_a_directory(con: Any) -> None:
    assert run.attempts("b1").run(con)["run_id"].to_list() == ["b1", "b2"]
    assert run.attempts("c1").run(con)["run_id"].to_list() == ["c1"]
    assert run.attempts("p1").run(con).is_empty()
