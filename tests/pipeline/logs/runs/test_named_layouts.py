"""What a folder's name promises counts as far as nothing surer contradicts it."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.logs.runs.named_layouts import without_contradicted
from sweepscope.pipeline.logs.runs.setting_precedence import choose
from tests.pipeline.ingest_in_memory import tables_of

STEPS = "".join(f"iter {step}: loss {4 - step / 10:.4f}, time {100 + step}.00ms, mfu 30.00%\n" for step in range(6))
TWO = "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1\n"


def used(*settings: tuple[str, str, str]) -> tuple[dict[str, str], list[str]]:
    rows = [("r", name, value, source, "/s/r", None) for name, value, source in settings]
    schema = ["run_id", "name", "value", "setting_source", "source_path", "line_no"]
    named = without_contradicted(choose(pl.DataFrame(rows, schema=schema, orient="row")))
    chosen = named.chosen.filter("is_used").select("name", "value")
    return dict(chosen.iter_rows()), named.conflicts["text"].to_list()


def of_name(text: str) -> list[tuple[str, str, str]]:
    return [(name, value, "folder_name") for name, value in (part.split("=") for part in text.split())]


@pytest.mark.parametrize(("name", "degrees"), [("gpt2_dp1", (2, 1)), ("gpt2_dp2", (2, 1)), ("gpt2_dp1_tp2", (2, 1))])
def test_the_processes_that_a_log_prints_count_more_than_a_name(name: str, degrees: tuple[int, int]) -> None:
    tables = tables_of({f"{name}/train.log": TWO + STEPS})
    (run,) = complete_runs(tables["runs"]).runs.to_dicts()
    assert (run["dp"], run["tp"]) == degrees
    conflicts = tables["events"].filter(kind="config_conflict")["text"].to_list()
    assert [text for text in conflicts if text.startswith("dp: folder_name says 1")] == conflicts[: "dp1" in name]


def test_a_name_without_anything_surer_counts() -> None:
    assert used(*of_name("dp=2 tp=4")) == ({"dp": "2", "tp": "4"}, [])


def test_a_name_counts_where_it_goes_with_the_rest() -> None:
    sure = ("num_gpus", "8", "log_line")
    assert used(sure, *of_name("dp=2 tp=4 pp=1")) == ({"num_gpus": "8", "dp": "2", "tp": "4", "pp": "1"}, [])
    assert used(sure, *of_name("tp=4")) == ({"num_gpus": "8", "tp": "4"}, [])


def test_a_degree_that_follows_from_surer_sources_replaces_that_of_the_name() -> None:
    sure = [(name, value, "config_file") for name, value in (("num_gpus", "8"), ("tp", "4"), ("pp", "1"), ("cp", "1"))]
    values, conflicts = used(*sure, *of_name("dp=4"))
    assert "dp" not in values
    assert conflicts == ["dp: folder_name says 4, surer sources give 2; the latter counts"]


@pytest.mark.parametrize("names", ["dp=2 tp=4 pp=1 cp=1", "tp=3", "dp=16"])
def test_degrees_that_do_not_make_the_printed_size_are_left_out(names: str) -> None:
    values, conflicts = used(("num_gpus", "4", "log_line"), *of_name(names))
    assert set(values) & {"dp", "tp"} == set()
    assert conflicts
    assert all("does not go with num_gpus 4" in text for text in conflicts)


def test_a_batch_that_does_not_make_the_global_one_is_left_out() -> None:
    sure = [("gbs", "32", "log_line"), ("dp", "4", "log_line")]
    assert used(*sure, *of_name("mbs=2 gas=4"))[0] == {"gbs": "32", "dp": "4", "mbs": "2", "gas": "4"}
    assert used(*sure, *of_name("mbs=2 gas=2"))[0] == {"gbs": "32", "dp": "4"}


def test_what_is_no_layout_is_left_alone() -> None:
    assert used(("num_gpus", "4", "log_line"), *of_name("zero_stage=3")) == ({"num_gpus": "4", "zero_stage": "3"}, [])
