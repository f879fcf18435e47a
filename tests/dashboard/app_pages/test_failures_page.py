"""Failures & cost, and the run page's part of it, headless over small stores with the real views."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.selection import options
from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import event_row, make_real_home, run_row

_START = datetime(2026, 11, 20, 8, 0)


def ran(run_id: str, *, at: int = 0, minutes: int = 30, **changes: Any) -> dict[str, Any]:
    start = _START + timedelta(minutes=at)
    return run_row(
        run_id,
        started_at=start,
        ended_at=start + timedelta(minutes=minutes),
        gpu_hours=16 * minutes / 60,
        gpu_hours_basis="timestamps",
        **changes,
    )


def died(run_id: str, status: str, evidence: str, **changes: Any) -> dict[str, Any]:
    return ran(run_id, status=status, status_evidence=evidence, mfu=None, tokens_per_s_per_gpu=None, **changes)


RUNS = [
    ran("good"),
    ran("slow", at=40, dp=8, tp=2, tokens_per_s_per_gpu=100.0),
    *(died(f"oom{i}", "oom", f"CUDA out of memory. Tried {i}.5 GiB", mbs=10, gas=1, at=80) for i in range(4)),
    died("net", "nccl_error", "NCCL error in: <b>x</b>", dp=4, tp=4, at=100),
    died("net2", "node_fail", "DUE TO NODE FAILURE", dp=4, tp=4, at=140),
    died("stopped", "cancelled", "CANCELLED AT"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lost = event_row("net2", kind="node_fail", line_no=91, text="DUE TO NODE FAILURE")
    return make_real_home(tmp_path_factory.mktemp("failures") / "home", runs=RUNS, events=[lost])


def test_the_first_screen_says_what_failed_and_what_it_cost(home: Path) -> None:
    text = text_of(look_at(home, "failures")).replace("\xa0", " ")
    assert "<b>6 of 8 runs failed (75 %)</b>; 4 of them ran out of GPU memory." in text
    assert "Failures took 48.0 of 72.0 GPU-hours (67 %)." in text
    assert "1 stopped, running or unknown is in no rate" in text
    # The winner ran first, so its cell had cost 8 + 8 GPU-hours then: "stopped" began at the same minute.
    assert 'GPU-hours until the winners had run</div><div class="value">16.0' in text


def test_reasons_lead_to_runs_and_are_escaped(home: Path) -> None:
    text = text_of(look_at(home, "failures"))
    assert "CUDA out of memory. Tried # GiB" in text
    assert "run?run=oom" in text
    assert "<b>x</b>" not in text
    assert "&lt;b&gt;x&lt;/b&gt;" in text


def table(app: AppTest, column: str) -> Any:
    (found,) = [one.value for one in app.dataframe if column in one.value.columns]
    return found


def test_the_retry_list_holds_what_the_machines_ended(home: Path) -> None:
    rows = table(look_at(home, "failures"), "Attempts")
    assert rows["Status"].to_list() == ["▣ node failure"]
    assert rows["Attempts"].to_list() == [2]
    assert rows["Evidence line"].to_list() == [91]
    assert rows["Lost, GPU·h"].to_list() == [16.0]


def test_a_retry_that_does_not_say_what_it_was_is_told_so_and_stands_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = dict.fromkeys(("model", "layout", "dp", "tp", "pp", "mbs", "gas"))
    runs = [died("bare", "hang", "Watchdog caught", minutes=300, **bare), died("told", "node_fail", "DUE TO", at=40)]
    app = open_page(make_real_home(tmp_path / "home", runs=runs), monkeypatch, "failures")
    rows = table(app, "Attempts")
    assert rows["Model"].to_list() == ["Llama 8B", "not logged"]
    assert rows["Layout"].to_list()[1] == "not logged"
    text = text_of(app)
    assert "<b>1 row at the end names neither model nor layout,</b>" in text
    assert "Known is the framework: megatron." in text


def test_where_every_retry_says_what_it_was_no_note_stands_below(home: Path) -> None:
    assert "neither model nor layout" not in text_of(look_at(home, "failures"))


def test_a_price_and_a_dimension_come_from_the_address(home: Path) -> None:
    app = look_at(home, "failures", price="2", by="strategy")
    assert "$144" in text_of(app)
    assert "by strategy, run attempts" in text_of(app)
    app = look_at(home, "failures", price="cheap", by="nonsense")
    assert "$" not in text_of(app).replace("Price per GPU-hour, $", "")


def test_when_nothing_failed_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(open_page(make_real_home(tmp_path / "home", runs=RUNS[:2]), monkeypatch, "failures"))
    assert "All 2 runs that ended completed." in text
    assert "No configuration is without a result for infrastructure reasons alone." in text


def test_runs_without_model_or_time_still_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = dict.fromkeys(
        ("model", "seq_len", "gbs_tokens", "num_nodes", "started_at", "ended_at", "gpu_hours", "layout")
    )
    home = make_real_home(tmp_path / "home", runs=[run_row("x", status="crash", sweep=None, **bare)])
    text = text_of(open_page(home, monkeypatch, "failures"))
    assert "1 of 1 run failed" in text
    assert "unknown" in text


def test_without_a_run_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sweepscope ingest PATH" in text_of(open_page(make_real_home(tmp_path / "home"), monkeypatch, "failures"))


def test_the_run_page_shows_cost_tries_and_similar_failures(home: Path) -> None:
    text = text_of(look_at(home, "run", run="net2")).replace("\xa0", " ")
    assert "<b>8.0 GPU-hours</b>, 11.1 % of its sweep (from its first to its last timestamp)" in text
    assert "run?run=net" in text
    assert "2 of 2 attempts ended so or alike" in text
    text = text_of(look_at(home, "run", run="oom1"))
    assert "3 other runs of the sweep, in the same words" in text
    assert "Worth submitting again" not in text


def test_rates_are_asked_once_whatever_the_bars_are_by(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[tuple[str, str]] = set()
    frame = Reader.frame

    def noted(self: Reader, sql: str, params: Mapping[str, object]) -> pl.DataFrame:
        if "FROM failure_rates" in sql:
            asked.add((sql, str(params)))
        return frame(self, sql, params)

    monkeypatch.setattr(Reader, "frame", noted)
    open_page(home, monkeypatch, "failures")
    open_page(home, monkeypatch, "failures", by="model")
    assert len(asked) == 1


def test_of_thousands_of_sweeps_the_largest_are_listed_and_any_opens_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "MOST_LISTED", 2)
    sizes = {"a": 3, "b": 2, "c": 1, "d": 1}
    runs = [ran(f"{name}{at}", sweep=name) for name, size in sizes.items() for at in range(size)]
    home = make_real_home(tmp_path / "home", runs=runs)
    box = open_page(home, monkeypatch, "failures").selectbox(key="url_sweep")
    assert box.options == ["all sweeps", "a · 3 runs", "b · 2 runs"]
    assert box.help == (
        "Listed are 2 of 4 sweeps, those with the most runs first. An address with sweep=NAME opens any of them."
    )
    box = open_page(home, monkeypatch, "failures", sweep="d").selectbox(key="url_sweep")
    assert (box.options[-1], box.value) == ("d · 1 run", "d")
