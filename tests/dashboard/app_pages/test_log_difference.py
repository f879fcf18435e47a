"""The difference of two logs on Compare, headless: numbers aside, by attempt, and of known files only."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.inspection import log_diff
from sweepscope.pipeline.inspection.log_window import Known
from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import file_row, make_real_home, run_row

FIRST = "NCCL version 2.27\nstep 1 loss 10.5\nstep 2 loss 9.5\nfalling back to <TCP>\n"
SECOND = "NCCL version 2.28\nstep 1 loss 11.0\nsaved at 0xdeadbeef\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    files = []
    for name, text in (("a", FIRST), ("b", SECOND + "second attempt\n" + SECOND), ("changed", "x\n")):
        path = folder / f"{name}.out"
        path.write_text(text)
        stat = path.stat()
        files.append(file_row(str(path), bytes=stat.st_size, mtime=stat.st_mtime, content_digest=None))
    (folder / "changed.out").write_text("another content\n")
    runs = [
        run_row("a1", source_path=str(folder / "a.out"), line_no=1),
        run_row("b1", source_path=str(folder / "b.out"), line_no=1),
        run_row("b2", source_path=str(folder / "b.out"), line_no=4, attempt=2),
        run_row("c1", source_path=str(folder / "changed.out"), line_no=1),
        run_row("p1", origin="published", source_path="data/published/frontier.csv", line_no=7),
    ]
    return make_real_home(folder / "home", runs=runs, files=files)


def plain(home: Path, *run_ids: str, logs: str = "true") -> str:
    return text_of(look_at(home, "compare", runs=",".join(run_ids), logs=logs))


def test_lines_that_differ_in_numbers_alone_are_alike(home: Path) -> None:
    text = plain(home, "a1", "b1")
    assert "<b>A</b> has 1 kind of lines for itself, in 4 lines." in text
    assert "falling back to &lt;TCP&gt;" in text
    assert "line=4" in text
    assert "<b>B</b> has 1 kind of lines for itself, in 3 lines." in text
    assert "saved at 0xdeadbeef" in text


def test_of_a_log_with_two_attempts_the_lines_of_one_count(home: Path) -> None:
    text = plain(home, "b1", "b2")
    assert "<b>A</b> has no line that the other has not, in 3 lines." in text
    assert "second attempt" in text


def test_logs_are_read_when_they_are_asked_for(home: Path) -> None:
    assert "falling back" not in plain(home, "a1", "b1", logs="false")


def test_a_log_that_has_changed_is_refused(home: Path) -> None:
    assert "has changed since it was read" in plain(home, "a1", "c1")


def test_a_published_run_has_no_log(home: Path) -> None:
    assert "Only runs whose logs lie on this machine" in plain(home, "a1", "p1")


def test_a_long_log_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_diff, "MOST_LINES", 3)
    path = tmp_path / "long.out"
    path.write_text("one\ntwo\nthree\nfour\n")
    stat = path.stat()
    found = log_diff.forms(Known(str(path), stat.st_size, stat.st_mtime))
    assert (found.lines, found.is_cut, set(found.by_key)) == (3, True, {"one", "two", "three"})
