"""The editor of what was inferred, as its user clicks through it."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.app import editing
from sweepscope.pipeline.ingest.batch import parse_batch
from sweepscope.pipeline.ingest.dialect_files import in_force, remember_text
from sweepscope.pipeline.ingest.infer_logs import infer_log
from sweepscope.pipeline.ingest.plan import find
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.web_access import Access
from sweepscope.pipeline.logs.declared.toml_writer import bare
from sweepscope.pipeline.store.home import Home
from tests.dashboard.app_pages.test_data_pages import open_page, text_of
from tests.dashboard.store_rows import file_row, make_home, run_row
from tests.pipeline.ingest_in_memory import LATER
from tests.unknown_trainer import write_sweep

OWN = editing.VARIABLE


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    write_sweep(tmp_path / "sweep")
    return tmp_path / "sweep"


@pytest.fixture
def home(tmp_path: Path, sweep: Path) -> Path:
    """A home whose store knows three logs of one form, as an ingest would have left it."""
    rows: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("runs", "files", "inferred_columns", "inferred_dialects")
    }
    for number, log in enumerate(sorted(sweep.rglob("*.log"))):
        inference, path = infer_log(str(log), lambda log=log: Reader(str(log))), str(log)  # type: ignore[misc] # mypy infers no type of a default
        rows["runs"].append(run_row(f"r{number}", source_path=path, parser="inferred", step_time_s=None, gbs=None))
        rows["files"].append(file_row(path))
        rows["inferred_dialects"].append({"source_path": path, "dialect_text": bare(inference.toml)})
        rows["inferred_columns"] += [
            {
                "source_path": path,
                "column_name": one.column,
                "field": one.field,
                "confidence": one.confidence,
                "is_read": one.is_used,
                "grounds": one.reason,
                "line_no": one.line_no,
                "example": one.text,
            }
            for one in inference.columns
        ]
    return make_home(tmp_path / "home", **rows)


def look(home: Path, monkeypatch: pytest.MonkeyPatch, *, is_own: bool = True) -> AppTest:
    monkeypatch.setenv(OWN, "1" if is_own else "")
    return open_page(home, monkeypatch, "health")


def forms(app: AppTest) -> pd.DataFrame:
    """The table of forms of logs."""
    (table,) = [frame.value for frame in app.dataframe if "Read by" in frame.value.columns]
    return table


def choose(app: AppTest, label: str, option: str) -> None:
    (box,) = [box for box in app.selectbox if box.label == label]
    box.select(option).run()


def state(app: AppTest, label: str, number: int) -> None:
    (field,) = [field for field in app.number_input if field.label == label and str(field.key).startswith("dialect_")]
    field.set_value(number).run()


def click(app: AppTest, label: str) -> None:
    (button,) = [button for button in app.button if button.label == label]
    button.click().run()
    assert not app.exception


def test_a_sweep_of_one_form_is_one_row_with_the_values_of_its_lines(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = look(home, monkeypatch)
    table = forms(app)
    assert (table["Files"].to_list(), table["Read by"].to_list()) == ([3], ["inference"])
    shown = {box.label: box.value for box in app.selectbox}
    assert shown["took 0.400"] == shown["tput 20480"] == shown["q 0.1"] == "_"
    assert (shown["it ·/40"], shown["tensor_parallel"]) == ("steps_planned", "tp")
    assert "perhaps step time, not read: low confidence, named 'took'; its unit is unknown" in text_of(app)
    assert "it 1/40 | nll " in text_of(app)


def test_what_is_saved_reads_the_logs(home: Path, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = look(home, monkeypatch)
    choose(app, "took 0.400", "step_time:s")
    choose(app, "tput 20480", "tokens_per_s_per_gpu")
    choose(app, "micro_batch", "_")
    state(app, "Global batch, sequences", 4)
    state(app, "GPUs", 8)
    click(app, "Try it on the logs")
    assert app.dataframe[-1].value["What the file reads"].to_list()[0].startswith("40 steps; the first has loss ")
    assert not (home / "dialects").exists()
    click(app, "Save")
    assert "<b>Saved</b> as " in text_of(app)
    assert "3 logs will be read by it at the next ingest" in text_of(app)
    dialects = in_force(Home(home)).dialects
    runs = parse_batch(find([str(sweep)], dialects=dialects), now=LATER, dialects=dialects)["runs"]
    assert runs["framework"].unique().to_list() == ["sweep"]
    assert sorted(runs["step_time_s"]) == [0.4, 0.5, 0.6]
    assert sorted(runs["tokens_per_s_per_gpu"], reverse=True) == [20480, 16384, 13653]
    assert (runs["gbs"].unique().to_list(), runs["mbs"].unique().to_list()) == ([4], [None])


def test_a_saved_file_is_changed_where_it_was_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = look(home, monkeypatch)
    choose(app, "took 0.400", "step_time:s")
    click(app, "Save")
    app = look(home, monkeypatch)
    assert forms(app)["Read by"].to_list() == ["sweep, next ingest"]
    assert {box.label: box.value for box in app.selectbox}["took 0.400"] == "step_time:s"
    choose(app, "took 0.400", "step_time:ms")
    click(app, "Save")
    assert [path.name for path in (home / "dialects").glob("*.toml")] == ["sweep.toml"]
    assert "took {step_time:ms}" in (home / "dialects" / "sweep.toml").read_text()


def test_a_correction_that_cannot_be_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = look(home, monkeypatch)
    choose(app, "took 0.400", "loss")
    assert "'nll …' and 'took …' are both taken for loss. Keep one of them" in text_of(app)
    assert not app.button or all(button.label != "Save" for button in app.button)
    choose(app, "took 0.400", "_")
    (name,) = [field for field in app.text_input if field.label.startswith("Name of")]
    name.set_value("Not A Name").run()
    click(app, "Save")
    assert "cannot be used: a small letter, then up to 39" in text_of(app)
    assert not (home / "dialects").exists()


def test_logs_that_have_changed_since_are_named(home: Path, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = min(sweep.rglob("*.log"))
    first.write_text("something else\n")
    app = look(home, monkeypatch)
    click(app, "Save")
    assert f"The file would not read {first}: no line of it is one of these steps." in text_of(app)


@pytest.mark.parametrize("is_own", [True, False])
def test_pages_that_are_not_only_ones_own_give_the_file_to_download(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, is_own: bool
) -> None:
    if is_own:  # then it is the home that cannot be written to
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK | os.X_OK or Path(path) != home)
    app = look(home, monkeypatch, is_own=is_own)
    assert not any(button.label == "Save" for button in app.button)
    assert "<b>sweepscope ingest --dialect sweep.toml " in text_of(app)
    assert app.get("download_button")


@pytest.mark.parametrize(
    ("host", "access", "may"),
    [
        ("127.0.0.1", Access(), True),
        ("127.0.0.1", Access(password="x"), False),
        ("127.0.0.1", Access(names=("sweeps.example.org",)), False),
        ("0.0.0.0", Access(), False),  # noqa: S104 -- not bound
    ],
)
def test_only_pages_that_nobody_else_opens_may_save(
    host: str, access: Access, home: Path, monkeypatch: pytest.MonkeyPatch, *, may: bool
) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home))
    monkeypatch.setenv(OWN, "")
    editing.allow(host, access)
    assert editing.may_keep() is may


def test_files_of_ones_own_are_listed_without_inferred_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "home", runs=[run_row("a")], files=[file_row("/logs/a.log", parser="acme")])
    text = 'name = "acme"\nsignature = ["acme trainer"]\n[[step]]\nline = "step {step} loss {loss}"\n'
    remember_text(Home(home), text, given="by hand")
    app = look(home, monkeypatch)
    assert "Formats of your own <span>1 dialect file</span>" in text_of(app)
    assert forms(app)["Read by"].to_list() == ["acme, confirmed"]
    assert not [field for field in app.number_input if str(field.key).startswith("dialect_")]
