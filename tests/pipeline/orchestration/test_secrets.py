"""A sweep full of credentials leaves none of them in its home, in Dagster's records, or in what the program prints."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path

import dagster as dg
import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.io.event_log import KeyValueFormatter
from sweepscope.pipeline.orchestration import steps
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.jobs import run_config
from sweepscope.pipeline.orchestration.report_runs import report_runs
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.run_memory import one_sentence
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.text.secrets import MARK
from tests.paths import ROOT
from tests.secret_samples import Sample
from tests.secret_sweep import leaks, texts_of, write_sweep

TOKEN = "hf_" + "aB3dE6" * 6


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Path, list[Sample]]:
    folder = tmp_path_factory.mktemp("secrets")
    given = write_sweep(folder / "sweep")
    home = Home.resolve(str(folder / "home"))
    for _ in range(2):  # the second one reads on where the first one stopped
        ingest_paths(home, [str(folder / "sweep")], with_published=False)
        with (folder / "sweep" / "dp4_tp1" / "log_1003.out").open("a") as log:
            log.write(f"[default0]:[rank0]: RuntimeError: {given[0].line}\n")
    with open_instance(home) as instance:
        report_runs(instance, home)
    return home, folder / "sweep", given


def test_no_byte_of_the_home_has_a_part_of_a_credential(ingested: tuple[Home, Path, list[Sample]]) -> None:
    home, _, given = ingested
    found = dict(texts_of(home.path))
    assert any(name.startswith("records/") and MARK in text for name, text in found.items())
    assert any(name.startswith("dagster/") and "SQLite" in text for name, text in found.items())
    assert any(name.startswith("lake/events/") and MARK in text for name, text in found.items())
    assert leaks(found.items(), given) == []


@pytest.mark.parametrize("page", ["failures", "health", "runs", "run", "network"])
def test_pages_show_the_marks_and_no_part_of_a_credential(
    ingested: tuple[Home, Path, list[Sample]], page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _, given = ingested
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(home.path))
    app = AppTest.from_file(str(ROOT / "dashboard" / "streamlit_app.py"), default_timeout=120)
    app.switch_page(f"app_pages/{page}.py")
    if page == "run":
        app.query_params["run"] = Lake(home).read("runs", ["run_id"])["run_id"][0]
    app.run()
    assert not app.exception
    shown = [block.body for block in app.get("html")] + [table.value.to_csv() for table in app.dataframe]
    assert shown
    assert leaks([(page, text) for text in shown], given) == []


def test_the_ledger_counts_what_was_hidden_by_file(ingested: tuple[Home, Path, list[Sample]]) -> None:
    files = Lake(ingested[0]).read("files", ["path", "secrets_hidden"])
    hidden = {Path(path).name: count for path, count in files.iter_rows()}
    assert all(hidden[name] > 100 for name in ("log_1001.out", "log_1002.out", "log_1003.out", "sacct.txt"))
    assert files["secrets_hidden"].null_count() == 0


def test_commands_that_quote_logs_hide_them(
    ingested: tuple[Home, Path, list[Sample]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, sweep, given = ingested
    dialect = tmp_path / "own.toml"
    main(["dialect", "example"])
    dialect.write_text(capsys.readouterr().out)
    for command in (["nccl"], ["dialect", "test", str(dialect)]):
        for form in ([], ["--json"]):
            main([*command, str(sweep / "dp1_tp2" / "log_1002.out"), *form])
            printed = capsys.readouterr()
            assert leaks([("stdout", printed.out), ("stderr", printed.err)], given) == []


def test_the_programs_own_log_hides_them() -> None:
    try:
        raise ValueError(f"cannot read token={TOKEN}")
    except ValueError:
        record = logging.LogRecord("sweepscope.x", logging.INFO, "x.py", 1, "reason=%s", (TOKEN,), sys.exc_info())
    text = KeyValueFormatter().format(record)
    assert "aB3d" not in text
    assert text.count(MARK) >= 2


@pytest.mark.parametrize("error", [InputError(f"refused {TOKEN}"), ValueError(f"refused {TOKEN}")])
def test_errors_that_dagster_keeps_hide_them(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_tables: object) -> None:
        try:
            raise KeyError(f"password={TOKEN}")
        except KeyError:
            raise error from ValueError(f"password = 'q{TOKEN}'")

    monkeypatch.setattr(steps, "validate_batch", fail)
    home, log = Home.resolve(str(tmp_path / "home")), tmp_path / "train.log"
    log.write_text("nothing\n")
    with pytest.raises(type(error)):
        ingest_paths(home, [str(log)], with_published=False)
    with open_instance(home) as instance:
        report_runs(instance, home)
        job = build(str(home.path)).resolve_job_def("ingest")
        with pytest.raises(Exception, match="hidden: Hugging Face token"):
            job.execute_in_process(instance=instance, run_config=run_config(paths=[str(log)], with_published=False))
    found = dict(texts_of(home.path))
    assert any("hidden: Hugging Face token" in text for text in found.values())
    assert not [name for name, text in found.items() if "aB3dE6" in text]


def test_a_workers_traceback_that_quotes_one_is_left_out() -> None:
    error = InputError("cannot be read")
    error.add_note(f"in a worker:\nValueError: token={TOKEN}")
    with pytest.raises(dg.Failure, match="cannot be read") as raised, one_sentence():
        raise error
    assert "aB3d" not in "".join(traceback.format_exception(raised.value))


def test_errors_without_credentials_keep_their_cause() -> None:
    with pytest.raises(dg.Failure) as raised, one_sentence():
        raise InputError("no such file") from ValueError("below")
    assert str(raised.value.__cause__) == "no such file"
    with pytest.raises(ValueError, match="below"), one_sentence():
        raise ValueError("below")
