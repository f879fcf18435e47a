"""The log is key=value lines on stderr, as much of it as was asked for, from every process."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.io.event_log import ROOT_LOGGER, VARIABLE, configure, event
from sweepscope.pipeline.io.process_pool import ProcessPool
from tests.picotron_runs import picotron_run

LINE = re.compile(r'time=\S+Z level=(\w+) logger=\S+ pid=(\d+) event=(\w+)( \w+=([^\s"=]+|"(\\.|[^"\\])*"))*')
_LOG = logging.getLogger("sweepscope.tests")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No level from outside, and none that stays for other tests."""
    monkeypatch.setenv(VARIABLE, "")
    logger = logging.getLogger(ROOT_LOGGER)
    level = logger.level
    yield
    logger.setLevel(level)


def log_task(task: str) -> int:
    event(_LOG, logging.INFO, "task_done", task=task)
    return os.getpid()


def events(text: str) -> list[str]:
    """Names of the events in lines that all have the form of one."""
    matches = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(matches), text
    return [match[3] for match in matches if match]


@pytest.mark.parametrize(
    ("variable", "verbosity", "shown"),
    [("", 0, 1), ("info", 0, 2), ("debug", 0, 3), ("", 1, 2), ("", 7, 3), ("DEBUG", 1, 3)],
)
def test_the_more_verbose_of_variable_and_option_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, verbosity: int, shown: int
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    configure(verbosity)
    for level in (logging.WARNING, logging.INFO, logging.DEBUG):
        event(_LOG, level, "tried")
    out, err = capsys.readouterr()
    assert (events(err), out) == (["tried"] * shown, "")


def test_values_with_blanks_quotes_or_line_breaks_stay_one_value(capsys: pytest.CaptureFixture[str]) -> None:
    configure(1)
    event(_LOG, logging.INFO, "tried", path='/a "b"/c\nd=e', seconds=0.25, absent=None)
    err = capsys.readouterr().err
    assert events(err) == ["tried"]
    assert err.endswith('path="/a \\"b\\"/c\\nd=e" seconds=0.25\n')


@pytest.mark.slow
def test_an_ingest_logs_on_stderr_and_its_result_stays_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = picotron_run(tmp_path / "sweep")
    (run / "core.bin").write_bytes(b"\x7fELF")
    words = ["ingest", str(tmp_path / "sweep"), "--home", str(tmp_path / "home"), "--no-published", "--json", "-vv"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["runs"] == {"completed": 1}
    names = events(err)
    assert {"discovered", "planned", "reading", "file_parsed", "dialect", "validated", "committed"} <= set(names)
    assert "published" in names
    assert re.search(r'event=file_skipped path=\S+core.bin .*reason="not a log', err)
    assert re.search(r"event=dialect path=\S+ dialect=picotron hits=\d+", err)


def test_workers_log_as_their_parent_does(capfd: pytest.CaptureFixture[str]) -> None:
    configure(1)
    with ProcessPool("tests.pipeline.io.test_event_log:log_task", 2) as pool:
        while not all(worker.is_ready for worker in pool._workers):
            pool._receive(timeout_s=None)
        assert set(pool.map(["a", "b", "c", "d"])) - {os.getpid()}
    names = events(capfd.readouterr().err)
    assert names.count("worker_started") == 1
    assert names.count("task_done") == 4


def test_a_level_that_does_not_exist_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "loud")
    assert main(["store", "path"]) == 2
    assert "SWEEPSCOPE_LOG must be one of warning, info, debug, not 'loud'." in capsys.readouterr().err
