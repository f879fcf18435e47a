"""How often the watcher looks: from its command line, through the environment, to the sensor of Dagster's processes."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.commands.watch import add_watch_arguments
from sweepscope.pipeline.orchestration.watched_paths import EVERY_VARIABLE, every_s
from sweepscope.pipeline.store.home import Home


@pytest.mark.parametrize(("text", "seconds"), [("", 30), ("7", 7), ("0", 5), ("soon", 30), ("-3", 30)])
def test_the_environment_says_how_often(monkeypatch: pytest.MonkeyPatch, text: str, seconds: int) -> None:
    monkeypatch.setenv(EVERY_VARIABLE, text)
    assert every_s() == seconds


def test_the_command_line_says_so_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EVERY_VARIABLE, "45")
    parser = argparse.ArgumentParser()
    add_watch_arguments(parser)
    assert parser.parse_args(["/data"]).every == 45
    assert parser.parse_args(["/data", "--every", "5"]).every == 5


@pytest.mark.parametrize("text", ["4", "-5", "often", "1.5"])
def test_what_dagster_does_not_do_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_watch_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["/data", "--every", text])
    assert "no number of seconds from 5 on" in capsys.readouterr().err


def test_dagsters_processes_and_their_sensor_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environments: list[Mapping[str, str]] = []

    def started(*_words: str, environment: Mapping[str, str], **_options: object) -> None:
        environments.append(environment)

    monkeypatch.setattr(servers, "start", started)
    servers.dagster_processes(Home.resolve(str(tmp_path / "home")), ["/data"], 3000, "127.0.0.1", every_s=11)
    assert [one[EVERY_VARIABLE] for one in environments] == ["11", "11"]
    code = "from sweepscope.pipeline.orchestration.jobs import new_runs; print(new_runs.minimum_interval_seconds)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, EVERY_VARIABLE: environments[1][EVERY_VARIABLE]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "11"
