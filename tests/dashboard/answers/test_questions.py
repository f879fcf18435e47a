"""What programs are answered equals what the store and the pages have; errors name the value and those near it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sweepscope as ss
from sweepscope.dashboard.answers.answer import Answer, table
from sweepscope.dashboard.answers.questions import questions
from sweepscope.pipeline.errors import NoStoreError, QueryError, StoreError, SweepscopeError, UsageError
from tests.dashboard.app_pages.grid_home import make_home, run, small_sweep

pytestmark = pytest.mark.slow

CLUSTER: dict[str, Any] = {"model": "Llama 3 8B", "accelerator": "H100-SXM-80GB", "nodes": 1, "seq_len": 4096}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("answers") / "home", small_sweep())


def ask(home: Path, name: str, **arguments: Any) -> Answer:
    (question,) = (one for one in questions(home) if one.__name__ == name)
    return question(**arguments)


def test_the_best_configurations_are_those_of_the_view(home: Path) -> None:
    answer = ask(home, "best_configs")
    view = ss.open(home).best_configs()
    shown = {row["num_nodes"]: row for row in answer.tables[0].rows}
    for row in view.iter_rows(named=True):
        assert shown[row["num_nodes"]]["layout"] == row["layout"]
        assert shown[row["num_nodes"]]["tokens_per_s_per_gpu"] == row["tokens_per_s_per_gpu"]
        assert shown[row["num_nodes"]]["is_tie"] == row["is_tie"]
    assert "ran out of" in shown[4]["outcome"] or "OOM" in shown[4]["outcome"], shown[4]
    assert answer.origins == ["measured"]
    assert answer.store_version == 1


def test_one_cell_is_answered_in_a_sentence(home: Path) -> None:
    answer = ask(home, "best_configs", nodes=2)
    assert answer.answer.startswith("On 2 nodes, ")
    assert "**" not in answer.answer
    assert [row["num_nodes"] for row in answer.tables[0].rows] == [2]


def test_the_sql_of_an_answer_gives_its_rows(home: Path) -> None:
    answer = ask(home, "scaling")
    again = ask(home, "sql", query=answer.sql["Points"])
    speeds = [[row["tokens_per_s_per_gpu"] for row in one.tables[0].rows] for one in (answer, again)]
    assert speeds[0] == speeds[1] == [40_000.0, 36_000.0]


def test_failures_have_counts_and_deciding_lines(home: Path) -> None:
    answer = ask(home, "failures")
    assert answer.answer.startswith("1 of 5 runs failed")
    (lines,) = (one for one in answer.tables if one.title.startswith("Deciding lines"))
    assert [(row["status"], row["runs"], row["run_id"]) for row in lines.rows] == [("oom", 1, "e")]


def test_what_to_run_next_was_not_run(home: Path) -> None:
    with pytest.raises(StoreError, match="3 measured runs"):
        ask(home, "next_runs", nodes=4)


def test_proposals_are_layouts_that_were_not_run(tmp_path: Path) -> None:
    rows = [run(f"r{tp}", tp=tp, speed=20_000.0 - tp * 1_000) for tp in (2, 4, 8)]
    home = make_home(tmp_path, rows)
    proposed = [row["layout"] for one in ask(home, "next_runs").tables for row in one.rows]
    assert proposed
    assert not set(proposed) & set(ss.open(home).runs()["layout"])


def test_an_estimate_equals_that_of_the_notebooks(home: Path) -> None:
    layout = {"dp": 8, "mbs": 1, "gas": 8, "zero_stage": 3}
    answer = ask(home, "estimate", **CLUSTER, **layout)
    given = {**CLUSTER, **layout, "num_nodes": 1, "num_gpus": 8, "tp": 1, "pp": 1, "cp": 1, "ep": 1}
    expected = ss.estimate({**given, "recompute": "none"}, home=home).row(0, named=True)
    row = answer.tables[0].rows[0]
    assert row["est_step_time_s"] == pytest.approx(expected["est_step_time_s"])
    assert row["est_mem_bytes"] == pytest.approx(expected["est_mem_bytes"])


def test_a_search_equals_that_of_the_notebooks(home: Path) -> None:
    answer = ask(home, "search", **CLUSTER, gbs_tokens=262_144, limit=3)
    expected = ss.search(**CLUSTER, gbs_tokens=262_144, top=3, home=home)
    assert [row["est_step_time_s"] for row in answer.tables[0].rows] == pytest.approx(
        expected.layouts["est_step_time_s"].to_list()
    )


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("best_configs", {"model": "Llama 9B"}, "There is no model 'Llama 9B'"),
        ("best_configs", {"nodes": 3}, "There is no nodes '3'. There is, among others: 1, 2, 4"),
        ("best_configs", {"accelerator": "TPU"}, "There is no accelerator 'TPU'"),
        ("failures", {"sweep": "none"}, "There is no sweep 'none'"),
        ("failures", {"origin": "published"}, "There is no origin 'published'"),
        ("describe", {"table_name": "run"}, "There is no table 'run'"),
        ("search", {**CLUSTER, "gbs_tokens": 5}, "no multiple"),
        ("search", {**CLUSTER, "model": "GPT-9", "gbs_tokens": 8192}, "Unknown model: GPT-9"),
        ("estimate", {**CLUSTER, "accelerator": "abacus"}, "cannot be estimated"),
    ],
)
def test_a_value_that_there_is_not_is_an_error_with_those_that_are(
    home: Path, name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ask(home, name, **arguments)


@pytest.mark.parametrize("query", ["DROP TABLE runs", "COPY runs TO '/tmp/x'", "FROM read_text('/etc/hostname')"])
def test_sql_reads_the_store_only(home: Path, query: str) -> None:
    with pytest.raises(QueryError):
        ask(home, "sql", query=query)


def test_every_column_is_listed_with_its_type(home: Path) -> None:
    rows = ask(home, "describe", table_name="runs").tables[0].rows
    assert {row["column_name"] for row in rows if row["data_type"]} == set(ss.open(home).runs().columns)


def test_without_a_store_the_error_says_what_to_run(tmp_path: Path) -> None:
    for name in ("overview", "best_configs", "failures", "sql"):
        with pytest.raises(NoStoreError, match="sweepscope ingest PATH"):
            ask(tmp_path, name, **({"query": "select 1"} if name == "sql" else {}))


def test_a_store_without_runs_is_an_answer_of_its_own(tmp_path: Path) -> None:
    home = make_home(tmp_path, [])
    for name in ("overview", "best_configs", "scaling", "failures", "next_runs"):
        with pytest.raises(SweepscopeError, match=r"no run yet|No run has a cell yet"):
            ask(home, name)


def test_rows_beyond_the_limit_are_counted_and_unknown_columns_left_out() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3], "b": [None, None, None], "c": [float("nan"), 1.0, None]})
    cut = table("T", frame, limit=2)
    assert (cut.rows_in_all, cut.rows) == (3, [{"a": 1, "c": "NaN"}, {"a": 2, "c": 1.0}])
    assert json.loads(cut.model_dump_json())["rows"] == cut.rows
