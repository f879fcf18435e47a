"""Runs with a file for each metric: DVCLive's folder, and the charts that TensorBoard hands out."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.trackers import series_folder
from tests.pipeline.ingest_in_memory import tables_of

STEPS = 30


def series(name: str, values: list[float], *, head: str = "step") -> str:
    return f"{head}\t{name}\n" + "".join(f"{step}\t{value}\n" for step, value in enumerate(values))


def losses(start: float = 9.0) -> list[float]:
    return [round(start / (1 + step / 10), 4) for step in range(STEPS)]


def dvclive(folder: str, start: float) -> dict[str, str]:
    below = f"{folder}/dvclive/plots/metrics"
    return {
        f"{below}/train/loss.tsv": series("loss", losses(start)),
        f"{below}/train/lr.tsv": series("lr", [1e-3] * STEPS),
        f"{below}/eval/loss.tsv": series("loss", losses(start + 1)),
        f"{folder}/dvclive/params.yaml": "seq_len: 1024\nparallel: {tp: 2, dp: 4}\n",
        f"{folder}/dvclive/metrics.json": '{"train": {"loss": 2.3}, "step": 29}',
    }


def test_a_folder_of_dvclive_is_one_run_with_its_parameters() -> None:
    tables = tables_of({**dvclive("a", 9.0), **dvclive("b", 8.0)})
    runs = tables["runs"].sort("source_path")
    assert runs.height == 2
    assert runs["steps_logged"].to_list() == [STEPS, STEPS]
    assert runs["seq_len"].to_list() == [1024, 1024]
    assert runs["tp"].to_list() == [2, 2]
    steps = tables["steps"].sort("source_path", "step")
    assert steps["loss"].to_list() == losses(9.0) + losses(8.0)
    assert steps["learning_rate"].to_list() == [1e-3] * 2 * STEPS


def test_charts_of_a_run_of_tensorboard_are_one_run() -> None:
    def chart(values: list[float]) -> str:
        rows = (f"{1_741_079_520 + 2 * step},{step},{value}\n" for step, value in enumerate(values))
        return "Wall time,Step,Value\n" + "".join(rows)

    files = {
        "run-tp2_train-tag-train_loss.csv": chart(losses()),
        "run-tp2_train-tag-train_lr.csv": chart([1e-3] * STEPS),
        "run-tp4_train-tag-train_loss.csv": chart(losses(8.0)),
    }
    runs = tables_of(files)["runs"].sort("source_path")
    assert runs["step_time_s"].to_list() == [2.0, 2.0]
    assert runs["steps_logged"].to_list() == [STEPS, STEPS]


def test_a_line_that_is_being_written_is_left_out_and_another_table_refused() -> None:
    whole = series("loss", losses())
    assert series_folder.read({"metrics/loss": whole + "30\t2."}, "a") == series_folder.read(
        {"metrics/loss": whole}, "a"
    )
    for text in ("a\tb\n1\t2\n", "step\ta\tb\n1\t2\t3\n", "step\tloss\n1\tlow\n"):
        with pytest.raises(ValueError, match=r"column of steps|one column of values|could not convert"):
            series_folder.check("metrics/loss", text)


def test_metrics_of_the_machine_alone_are_no_run() -> None:
    assert series_folder.read({"metrics/system/gpu/0/memory": series("memory", [1.0])}, "a") is None
