"""Log: opens what the store knows, at its line, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import event_row, file_row, make_real_home, run_row


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    log = folder / "train.out"
    log.write_text("".join(f"line <{number}>\n" for number in range(1, 201)))
    (folder / "private").write_text("root:x:0:0\n")
    (folder / "gone.out").touch()
    stat, gone = log.stat(), (folder / "gone.out")
    facts = {"bytes": stat.st_size, "mtime": stat.st_mtime, "content_digest": None}
    make_real_home(
        folder / "home",
        runs=[run_row("a1", source_path=str(log))],
        files=[file_row(str(log), **facts), file_row(str(gone), **facts)],
        events=[
            event_row("a1", source_path=str(log), line_no=150, kind="oom", text="CUDA out of memory"),
            event_row("a1", source_path=str(log), line_no=20, kind="launch", text="torchrun"),
        ],
    )
    gone.unlink()
    return folder


def shown(folder: Path, **query: str) -> str:
    return text_of(look_at(folder / "home", "log", **query))


def test_the_line_is_shown_within_its_neighbours_and_marked(folder: Path) -> None:
    text = shown(folder, file=str(folder / "train.out"), line="150")
    assert "<b>Line 150 of train.out</b>, with 48 lines around it." in text
    assert 'ss-marked"><span class="line">150</span>line &lt;150&gt; <span class="remark">oom</span>' in text
    assert "&lt;126&gt;" in text
    assert "&lt;125&gt;" not in text
    assert "run?run=a1" in text
    assert "line=20" in text, "the other evidence line"


def test_evidence_on_the_page_of_a_run_leads_to_its_line(folder: Path) -> None:
    assert "train.out&amp;line=150" in text_of(look_at(folder / "home", "run", run="a1"))


@pytest.mark.parametrize("path", ["private", "home/store/results-1.duckdb", "../etc/passwd", ""])
def test_no_file_is_opened_that_was_not_ingested(folder: Path, path: str) -> None:
    text = shown(folder, file=str(folder / path), line="1")
    assert "root:x" not in text
    assert "This store knows no file" in text


def test_a_file_that_is_gone_is_said_to_be(folder: Path) -> None:
    text = shown(folder, file=str(folder / "gone.out"), line="3")
    assert "is gone: it was moved or deleted since it was read" in text


@pytest.mark.parametrize("line", ["0", "-1", "x", "", "9" * 30])
def test_an_address_without_a_line_says_where_lines_are(folder: Path, line: str) -> None:
    assert "No line is chosen." in shown(folder, file=str(folder / "train.out"), line=line)


def test_a_line_beyond_the_end_is_said_to_be(folder: Path) -> None:
    assert "has no line 9,000" in shown(folder, file=str(folder / "train.out"), line="9000")
