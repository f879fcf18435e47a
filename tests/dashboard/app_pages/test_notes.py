"""Notes, tags and named views on the pages: written, found, filtered by, removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.app import editing
from sweepscope.pipeline.store import notes
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from tests.dashboard.app_pages.test_data_pages import open_page, text_of
from tests.pipeline.store.lake_rows import accelerators, together, unit


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = Home.resolve(str(tmp_path_factory.mktemp("notes") / "home"))
    faster = unit("b", tokens_per_s_per_gpu=9_500.0, tp=2, dp=4, layout="DP4 TP2")
    Lake(home).commit(together([unit("a", layout="DP8"), faster, accelerators("H100")]))
    publish(home)
    return home.path


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Home:
    shutil.copytree(filled, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home")


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(editing.VARIABLE, "1")


def click(app: AppTest, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def test_a_note_and_tags_are_written_on_a_run_and_removed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page(home.path, monkeypatch, "run", run="a")
    app.text_area[0].set_value("restarted <b>by hand</b>").run()
    next(field for field in app.text_input if "Tags" in field.label).set_value("Paper, figure 3").run()
    click(app, "Save")
    text = text_of(app)
    assert "restarted &lt;b&gt;by hand" in text
    assert '<span class="ss-tag">paper</span>' in text
    assert "1 note, 2 tags" in text
    assert [row["text"] for row in notes.stored(home).to_dicts()] != []
    click(app, "Remove")
    assert "1 note, 1 tag" in text_of(app)


def test_what_is_no_tag_is_said_and_kept_in_the_field(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page(home.path, monkeypatch, "run", run="a")
    click(app, "Save")
    assert "Write a note, or tags" in text_of(app)
    next(field for field in app.text_input if "Tags" in field.label).set_value("???").run()
    click(app, "Save")
    assert "is no tag" in text_of(app)
    assert notes.stored(home).is_empty()


def test_a_note_on_a_cell_is_seen_at_its_runs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page(home.path, monkeypatch, "best")
    app.text_area[0].set_value("the switch was slow").run()
    click(app, "Save")
    assert "the switch was slow" in text_of(app)
    run = text_of(open_page(home.path, monkeypatch, "run", run="b"))
    assert "the switch was slow" in run
    assert "on its cell" in run


def test_runs_are_filtered_by_tag(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.add(home, [notes.row("tag", {"run_id": "b"}, "paper")])
    app = open_page(home.path, monkeypatch, "runs", tags="paper")
    (table,) = [frame.value for frame in app.dataframe]
    assert table["Tags"].to_list() == ["paper"]
    assert [box for box in app.multiselect if box.label == "Tag"]


def test_a_page_is_kept_as_a_view_and_removed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page(home.path, monkeypatch, "best", metric="throughput")
    click(app, "Keep")
    assert "A view needs a name" in text_of(app)
    next(field for field in app.text_input if field.label == "Keep as a view").set_value("Speed").run()
    click(app, "Keep")
    (row,) = notes.stored(home).to_dicts()
    assert row["text"] == "Speed"
    assert row["address"].startswith("best?")
    assert "metric=throughput" in row["address"]
    other = open_page(home.path, monkeypatch, "scaling")
    assert f'<a href="{row["address"].replace("&", "&amp;")}" target="_self">Speed</a>' in text_of(other)
    click(other, "Remove")
    assert notes.stored(home).is_empty()


def test_pages_that_others_open_have_the_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(editing.VARIABLE, "")
    app = open_page(home.path, monkeypatch, "run", run="a")
    assert not app.text_area
    assert any("sweepscope note a 'TEXT'" in block.value for block in app.code)
