"""Files of a run that come one after another, in any order, and are given with their folders: the run is the same."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs
from tests.pipeline.ingest.split_run import Run, splits
from tests.properties import draws

RUN, OTHER = Run(1), Run(2)


def rows(logs: LakeOfLogs) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]], list[tuple[object, ...]]]:
    """What the lake has of runs, their steps and their settings."""
    runs = logs.lake.read("runs").drop("started_at", "ended_at")
    steps = logs.lake.read("steps").drop("ts")
    chosen = logs.lake.read("settings").filter("is_used").select("run_id", "name", "value", "setting_source")
    return sorted(runs.rows(), key=str), sorted(steps.rows(), key=str), sorted(chosen.rows(), key=str)


def at(folder: str) -> LakeOfLogs:
    return LakeOfLogs(Path(os.path.realpath(folder)))


@settings(max_examples=draws(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(splits(RUN), st.randoms(use_true_random=False))
def test_files_that_come_one_after_another_give_the_same_rows(files: dict[str, str], random: object) -> None:
    order = sorted(files)
    random.shuffle(order)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as second:
        logs = at(folder)
        logs.write("sweep/other/train.log", OTHER.log(range(OTHER.steps)))
        for name in order:
            logs.write(f"sweep/run/{name}", files[name])
            logs.ingest()
        logs.ingest()
        again = LakeOfLogs(Path(second))
        os.symlink(logs.folder, again.folder)
        again.ingest()
        assert rows(logs) == rows(again)


@settings(max_examples=draws(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(splits(RUN), st.data())
def test_it_does_not_matter_which_folder_is_given(files: dict[str, str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as second:
        logs = at(folder)
        for name, text in files.items():
            logs.write(f"sweep/run/{name}", text)
        run = logs.folder / "sweep" / "run"
        inner = [run / name for name in files] + [(run / name).parent for name in files]
        for path in [*data.draw(st.lists(st.sampled_from([*inner, run, run.parent]), max_size=3)), run]:
            logs.ingest(path)
        again = LakeOfLogs(Path(second))
        os.symlink(logs.folder, again.folder)
        again.ingest(run)
        before = rows(logs)
        assert before == rows(again)
        logs.ingest(data.draw(st.sampled_from(inner)))  # nothing is taken out of a run that is known
        assert rows(logs) == before


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def test_a_second_run_in_the_folder_takes_its_steps_along(logs: LakeOfLogs) -> None:
    logs.write("train.log", RUN.log(range(4)))
    logs.write("hparams.yaml", RUN.settings)
    logs.write("a/metrics.csv", RUN.table(range(9)))
    logs.ingest()
    assert logs.runs() == [("train.log", 9)]
    logs.write("b/metrics.csv", OTHER.table(range(9)))  # a sweep, then, of which no folder is the log's
    logs.ingest()
    assert logs.runs() == [("a/metrics.csv", 9), ("b/metrics.csv", 9), ("train.log", 4)]
    assert logs.lake.read("steps").height == 22
    logs.ingest()
    assert logs.lake.read("steps").height == 22


def test_a_file_of_steps_without_a_log_becomes_that_of_the_log(logs: LakeOfLogs) -> None:
    logs.write("run/out/metrics.csv", RUN.table(range(9)))
    logs.write("run/out/hparams.yaml", RUN.settings)
    logs.ingest()
    assert logs.runs() == [("run/out/metrics.csv", 9)]
    logs.write("run/train.log", RUN.log(range(5)))
    logs.ingest()
    assert logs.runs() == [("run/train.log", 9)]
    assert logs.lake.read("runs")["mbs"].to_list() == [1]
    assert logs.lake.read("steps").filter(pl.col("source_path").str.ends_with(".csv"))["step"].to_list() == [6, 7, 8, 9]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ranks_that_print_the_same_come_one_after_another(logs: LakeOfLogs, order: tuple[int, int]) -> None:
    logs.write("sweep/other/train.log", OTHER.log(range(9)))
    for rank in order:
        logs.write(f"sweep/run/rank_{rank}/train.log", RUN.log(range(9)))
        logs.ingest()
    assert logs.runs() == [("sweep/other/train.log", 9), ("sweep/run/rank_0/train.log", 9)]
    logs.ingest()
    assert logs.runs() == [("sweep/other/train.log", 9), ("sweep/run/rank_0/train.log", 9)]
