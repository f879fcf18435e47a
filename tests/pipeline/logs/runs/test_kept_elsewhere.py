"""What a tracker in another folder adds to the run of a log."""

from __future__ import annotations

from typing import Any

import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.logs.runs.kept_elsewhere import Completed, complete
from sweepscope.pipeline.logs.runs.same_runs import SAME
from sweepscope.schemas.tables.runs import SETTINGS
from tests.run_rows import run_row

OPEN = {
    **dict.fromkeys(("tp", "dp", "pp", "cp", "num_gpus", "num_nodes", "gpus_per_node", "gas", "gbs", "gbs_tokens")),
    **dict.fromkeys(("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu_logged", "zero_stage")),
}


def completed(log: dict[str, Any], file: dict[str, Any], *settings: tuple[str, str, str]) -> Completed:
    """The log of run `log`, the tracker's run `file`, and settings: run, name, source."""
    runs = pl.DataFrame([run_row("log", **log), run_row("file", source_path="/w/run-1.wandb", **file)])
    runs = complete_runs(runs).runs
    rows = pl.DataFrame(
        [(run, name, str(runs.filter(run_id=run)[name].item()), source, True) for run, name, source in settings],
        schema=["run_id", "name", "value", "setting_source", "is_used"],
        orient="row",
    )
    same = pl.DataFrame([("file", "log")], schema=SAME, orient="row")
    return complete(runs, same, SETTINGS.conform(rows.with_columns(source_path=pl.lit("/w/run-1.wandb"))))


def test_settings_that_the_log_lacks_are_the_trackers_and_what_follows_is_derived() -> None:
    stated = [("file", name, "config_file") for name in ("dp", "tp", "pp", "cp", "gas")]
    found = completed(OPEN, {"dp": 2, "tp": 4, "gas": 8}, *stated)
    (run,) = found.runs.to_dicts()
    assert (run["run_id"], run["dp"], run["tp"], run["num_gpus"], run["gbs"]) == ("log", 2, 4, 8, 2 * 8 * run["mbs"])
    assert run["layout"].startswith("DP2 TP4 PP1")
    sources = dict(found.settings.select("name", "setting_source").iter_rows())
    assert (sources["tp"], sources["num_gpus"], sources["gbs"]) == ("config_file", "derived", "derived")
    assert found.settings["is_used"].all()
    assert found.events.is_empty()


def test_rates_are_taken_where_the_log_has_none_and_give_an_mfu() -> None:
    stated = [("file", name, "config_file") for name in ("dp", "tp", "pp", "cp", "gas")]
    (run,) = completed(OPEN, {"step_time_s": 2.0}, *stated).runs.to_dicts()
    assert run["step_time_s"] == 2.0
    assert run["mfu"] is not None
    (run,) = completed({"step_time_s": 3.0}, {"step_time_s": 2.0}).runs.to_dicts()
    assert run["step_time_s"] == 3.0


def test_a_contradiction_is_an_event_and_the_log_counts() -> None:
    found = completed({"mbs": 2}, {"mbs": 1, "gas": 32}, ("file", "mbs", "config_file"))
    assert found.runs["mbs"].to_list() == [2]
    ((kind, text),) = found.events.select("kind", "text").rows()
    assert (kind, text) == ("config_conflict", "mbs: log.out has 2, run-1.wandb has 1; the former counts")
    assert found.settings.filter(name="mbs").is_empty()


def test_what_a_tracker_states_replaces_a_documented_default() -> None:
    found = completed(
        {}, {"gpus_per_node": 4}, ("file", "gpus_per_node", "config_file"), ("log", "gpus_per_node", "assumed")
    )
    assert found.runs["gpus_per_node"].to_list() == [4]
    assert found.settings_gone.rows() == [("log", "gpus_per_node", "assumed")]


def test_what_follows_for_the_tracker_is_not_stated_by_it() -> None:
    found = completed({"zero_stage": None}, {"zero_stage": 1}, ("file", "zero_stage", "derived"))
    assert found.runs["zero_stage"].to_list() == [None]


def test_how_the_run_ended_is_the_trackers_where_the_log_just_stops() -> None:
    ends = [("truncated", "completed", "completed"), ("running", "running", "running"), ("oom", "crash", "oom")]
    for log, file, wanted in ends:
        assert completed({"status": log}, {"status": file}).runs["status"].to_list() == [wanted]


def test_nothing_changes_without_a_pair() -> None:
    runs = complete_runs(pl.DataFrame([run_row("log")])).runs
    assert complete(runs, pl.DataFrame(schema=SAME), SETTINGS.empty()).runs.is_empty()
