"""The page on nodes and the time line of a run, headless over small stores with the real views."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import event_row, make_real_home, run_row
from tests.nccl_rows import flight_row, hang_row

START = datetime(2026, 11, 20, 22, 41)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dead = {"status": "hang", "tokens_per_s_per_gpu": None, "mfu": None}
    rows = {
        "runs": [
            *(run_row(f"good{i}", hosts="n1, n2") for i in range(8)),
            *(run_row(f"bad{i}", hosts="n0", **dead) for i in range(4)),
        ],
        "events": [
            event_row("bad0", kind="hang", host="n0", line_no=950, text="watchdog <b>caught</b> it", ts=START),
            event_row("bad1", kind="worker_failed", host="n0", line_no=3, text="worker failed"),
            event_row("good0", kind="training_end", line_no=12, ts=START),
        ],
        "flight_records": [flight_row("t0", run_dir="/logs/bad0", created_ns=1_795_214_400_000_000_000)],
        "nccl_hangs": [hang_row("t0", evidence_source="flight_recorder", run_dir="/logs/bad0")],
    }
    return make_real_home(tmp_path_factory.mktemp("nodes") / "home", **rows)


def test_nodes_with_something_against_them_come_first(home: Path) -> None:
    text = text_of(look_at(home, "node")).replace("\xa0", " ")
    assert "<b>Check n0</b> first: there is evidence against 1 of 3 nodes." in text
    assert "named by 2 failures; fails more often than others" in text
    assert "node?node=n0" in text


def test_one_node(home: Path) -> None:
    text = text_of(look_at(home, "node", node="n0")).replace("\xa0", " ")
    assert "4 of 4 runs on it failed" in text
    assert "run?run=bad0" in text
    assert "watchdog &lt;b&gt;caught" in text
    assert "log?file=%2Flogs%2Fbad0%2Ftrain.out&amp;line=950" in text


def test_a_node_alone_is_compared_with_none(tmp_path: Path) -> None:
    runs = [run_row(f"bad{i}", hosts="n0", status="hang", tokens_per_s_per_gpu=None, mfu=None) for i in range(2)]
    events = [event_row("bad0", kind="hang", host="n0", text="watchdog caught it")]
    text = text_of(look_at(make_real_home(tmp_path / "home", runs=runs, events=events), "node")).replace("\xa0", " ")
    assert "<b>n0: named by 1 failure.</b>" in text
    assert "It is the only node here, so there is none to compare it with." in text


def test_a_node_of_another_store(home: Path) -> None:
    assert "This store has no node nowhere." in text_of(look_at(home, "node", node="nowhere"))


def test_a_store_without_nodes(tmp_path: Path) -> None:
    text = text_of(look_at(make_real_home(tmp_path / "home", runs=[run_row()]), "node"))
    assert "No run, line or benchmark of this store names a node." in text


def test_a_failed_run_has_its_timeline_open_and_its_nodes_linked(home: Path) -> None:
    text = text_of(look_at(home, "run", run="bad0")).replace("\xa0", " ")
    assert "3 entries from log and flight recorder" in text
    assert "Suspect of the hang" in text
    assert "hang?at=" in text
    assert '<a href="node?node=n0"' in text


def test_a_completed_run_has_it_behind_its_heading(home: Path) -> None:
    app = look_at(home, "run", run="good0")
    assert "Timeline · 1 entry from log" in [expander.label for expander in app.expander]
