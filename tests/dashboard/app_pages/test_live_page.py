"""Running now: what is written lately runs, what is long silent does not; progress, time left and the last line."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text import live as texts
from sweepscope.dashboard.view_models.live import job
from sweepscope.pipeline.inspection.live_log import end_of
from tests.dashboard.app_pages.test_data_pages import open_page, text_of
from tests.dashboard.store_rows import file_row, make_home, run_row, step_rows

NOW = 1_800_000_000.0


def row(**changes: object) -> Row:
    """A run with a step every 2 s, a line for each, and 100 of 600 steps made."""
    known = {
        "mtime_s": NOW,
        "last_step": 100,
        "steps_planned": 600,
        "step_basis": "step",
        "tokens_per_s_per_gpu": 6500.0,
    }
    return {**known, "pace_s": 2.0, "usual_pause_s": 2.0, "longest_pause_s": 5.0, **changes}


@pytest.mark.parametrize(
    ("silent_s", "is_live", "is_silent"), [(0, True, False), (59, True, False), (61, True, True), (901, False, False)]
)
def test_a_log_runs_while_it_is_written(silent_s: float, *, is_live: bool, is_silent: bool) -> None:
    found = job(row(), NOW + silent_s)
    assert (found.is_live, found.is_silent) == (is_live, is_silent)


def test_a_run_of_long_pauses_has_more_patience() -> None:
    assert job(row(usual_pause_s=900.0, longest_pause_s=1000.0), NOW + 2_900).is_live
    assert not job(row(usual_pause_s=900.0, longest_pause_s=1000.0), NOW + 3_100).is_live


def test_what_lies_on_disk_now_counts_too() -> None:
    assert job(row(mtime_s=NOW - 90_000), NOW, mtime_s=NOW - 3).is_live
    assert not job(row(mtime_s=NOW - 90_000), NOW).is_live
    assert not job(row(mtime_s=None), NOW).is_live


def test_the_time_left_is_the_steps_left_at_its_own_pace() -> None:
    found = job(row(), NOW)
    assert (found.share, found.left_s) == (pytest.approx(1 / 6), 1000.0)
    assert job(row(steps_planned=None), NOW).left_s is None
    assert job(row(step_basis="batch"), NOW).share is None
    assert job(row(last_step=None), NOW).left_s is None
    assert job(row(last_step=700), NOW).left_s == 0.0
    assert texts.progress(job(row(steps_planned=None), NOW)) == "step 100, plan not logged"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A job that is being written, one that a crash of its node has silenced for days, and one that completed."""
    logs = {name: tmp_path / "sweep" / name / "train.log" for name in ("alive", "dead", "done")}
    for log in logs.values():
        log.parent.mkdir(parents=True)
        log.write_text("step 6/600 loss 9.5\n\x1b[31mtoken=hf_abcdefghijklmnopqrstuvwxyz012345 step 7/600\x1b[0m\n")
    long_ago = time.time() - 5 * 86_400
    os.utime(logs["dead"], (long_ago, long_ago))
    runs = [
        run_row(name, source_path=str(log), run_dir=str(log.parent), sweep="sweep", last_step=6, steps_planned=600)
        | {"status": "completed" if name == "done" else "running"}
        for name, log in logs.items()
    ]
    files = [file_row(str(log), unit=str(log.parent), mtime=log.stat().st_mtime) for log in logs.values()]
    return make_home(tmp_path / "home", runs=runs, files=files, steps=step_rows("alive"))


def test_the_page_tells_running_jobs_from_dead_ones(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(open_page(home, monkeypatch, "live"))
    assert "<b>1 run is running.</b>" in text
    assert "step 6 of 600" in text
    assert "step 7/600" in text
    assert "hf_abcdefghijklmnopqrstuvwxyz012345" not in text
    assert "No longer written" in text
    assert "5 d 0 h ago" in text
    assert "done" not in text.replace("done anew", "")


def test_nothing_runs_in_a_store_of_ended_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "home", runs=[run_row("whole")], files=[file_row()])
    assert "<b>No run is in progress.</b>" in text_of(open_page(home, monkeypatch, "live"))


def test_the_end_of_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    assert end_of(str(tmp_path / "pipe.log")) is None
    assert end_of(str(tmp_path / "gone.log")) is None
    assert end_of(str(tmp_path)) is None
    (tmp_path / "empty.log").write_text("")
    assert end_of(str(tmp_path / "empty.log")) is not None
    (tmp_path / "long.log").write_bytes(b"x" * 100_000)
    assert len(end_of(str(tmp_path / "long.log")).last_line) == 400  # type: ignore[union-attr] # it is there
