"""What logs do not say, on Data health: gaps that are filled, statements that are withdrawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.app import editing
from sweepscope.pipeline.ingest.statements import Stated, of_home, state
from sweepscope.pipeline.store.home import Home
from tests.dashboard.app_pages.test_data_pages import open_page, text_of
from tests.dashboard.store_rows import file_row, make_home, run_row


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with three runs of one sweep without an accelerator, one of them without a model too, and a whole one."""
    gaps = [{"accelerator": None}, {"accelerator": None}, {"accelerator": None, "model": None, "params": None}]
    runs = [
        run_row(f"r{number}", run_dir=f"/logs/sweep/r{number}", sweep="sweep", **gap) for number, gap in enumerate(gaps)
    ]
    return make_home(tmp_path / "home", runs=[*runs, run_row("whole")], files=[file_row()])


def look(home: Path, monkeypatch: pytest.MonkeyPatch, *, is_own: bool = True) -> AppTest:
    monkeypatch.setenv(editing.VARIABLE, "1" if is_own else "")
    return open_page(home, monkeypatch, "health")


def click(app: AppTest, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def test_the_gaps_of_a_sweep_are_filled_for_its_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = look(home, monkeypatch)
    assert "3 runs without an accelerator, 1 run without a model" in text_of(app)
    (table,) = [frame.value for frame in app.dataframe if "What runs lack" in frame.value.columns]
    assert table["Folder"].to_list() == ["/logs/sweep"]
    click(app, "Save facts")
    assert "Nothing is chosen yet" in text_of(app)
    (card,) = [box for box in app.selectbox if box.label == "Accelerator"]
    card.select("H100-SXM-80GB").run()
    (cluster,) = [field for field in app.text_input if field.label == "Cluster"]
    cluster.set_value("alps").run()
    click(app, "Save facts")
    assert "<b>Saved</b> in " in text_of(app)
    assert "sweepscope ingest /logs/sweep" in text_of(app)
    (one,) = of_home(Home(home))
    assert (one.folder, dict(one.values)) == ("/logs/sweep", {"accelerator": "H100-SXM-80GB", "cluster": "alps"})


def test_a_statement_is_withdrawn(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state(Home(home), ["/logs/sweep"], Stated({"cluster": "alps"}))
    app = look(home, monkeypatch)
    assert "/logs/sweep: <b>cluster alps</b>" in text_of(app)
    click(app, "Withdraw")
    assert of_home(Home(home)) == ()
    assert "cluster alps" not in text_of(app)


def test_pages_that_others_open_say_the_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state(Home(home), ["/logs/sweep"], Stated({"cluster": "alps"}))
    app = look(home, monkeypatch, is_own=False)
    assert not [button for button in app.button if button.label in ("Save facts", "Withdraw")]
    assert "sweepscope ingest /logs/sweep --set accelerator=NAME" in text_of(app)


def test_nothing_is_asked_where_no_run_lacks_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "home", runs=[run_row("whole")], files=[file_row()])
    assert "What logs do not say" not in text_of(look(home, monkeypatch))


def test_a_damaged_file_of_statements_does_not_break_the_page(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Home(home).statements.parent.mkdir()
    Home(home).statements.write_text("[[runs]\n")
    app = look(home, monkeypatch)
    (cluster,) = [field for field in app.text_input if field.label == "Cluster"]
    cluster.set_value("alps").run()
    click(app, "Save facts")
    assert "is not TOML" in text_of(app)
