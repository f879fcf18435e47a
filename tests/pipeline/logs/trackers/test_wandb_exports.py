"""Tables that W&B exports: the same steps as the offline run has whose history they hold."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.logs.trackers import exports, wandb_exports, wandb_run
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun, steps
from tests.pipeline.logs.trackers.test_histories import RECORDED, WANDB, expected, flat

NAMES = [path.stem for path in WANDB]


def history_of(path: Path) -> list[dict[str, Any]]:
    """Rows as `run.history(pandas=False)` gives them: every value under the name that W&B shows."""
    return [flat(row) for row in expected(path)["rows"]]


def csv_of(rows: list[dict[str, Any]]) -> str:
    """As pandas writes them: an index, and nothing where a row has no such value."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, ["", *names], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"": at, **row} for at, row in enumerate(rows))
    return out.getvalue()


def without_lines(run: TrackedRun) -> list[tuple[Any, ...]]:
    return steps(run).drop("line_no").rows()


@pytest.mark.parametrize("path", WANDB, ids=NAMES)
def test_a_history_has_the_steps_of_its_run(path: Path) -> None:
    text = csv_of(history_of(path))
    assert exports.is_export(text)
    (run,) = exports.read_csv(text, "history")
    assert run.name == "history"
    assert without_lines(run) == without_lines(wandb_run.read(path.read_bytes()))


@pytest.mark.parametrize("path", WANDB, ids=NAMES)
def test_a_history_as_parquet_has_them_too(path: Path) -> None:
    out = io.BytesIO()
    pl.DataFrame(history_of(path), infer_schema_length=None).write_parquet(out)
    (run,) = wandb_exports.read_parquet(out.getvalue(), "history", most_cells=10_000)
    assert without_lines(run) == without_lines(wandb_run.read(path.read_bytes()))
    with pytest.raises(ValueError, match="rows are more"):
        wandb_exports.read_parquet(out.getvalue(), "history", most_cells=10)
    with pytest.raises(ValueError, match="damaged Parquet"):
        wandb_exports.read_parquet(out.getvalue()[:200], "history", most_cells=10_000)


def test_histories_of_several_runs_in_one_table_are_runs() -> None:
    rows = [{"run_id": path.stem, **row} for path in WANDB for row in history_of(path)]
    assert [run.name for run in exports.read_csv(csv_of(rows), "all")] == NAMES


def test_a_chart_has_a_run_for_each_of_its_lines() -> None:
    text = (
        '"Step","tp2 - train/loss","tp2 - train/loss__MIN","tp2 - train/loss__MAX","a - b - train/loss"\n'
        '"1","9.5","9.5","9.5","8.0"\n"2","9.0","9.0","9.0",""\n'
    )
    assert exports.is_export(text)
    found = {run.name: [(row.step, dict(row.scalars)) for row in run.rows] for run in exports.read_csv(text, "")}
    assert found == {
        "tp2": [(1, {"train/loss": 9.5}), (2, {"train/loss": 9.0})],
        "a - b": [(1, {"train/loss": 8.0})],
    }


RUNS = (
    '"Name","State","Created","Runtime","tensor_parallel_size","gradient_accumulation_steps","_step","loss",'
    '"tokens_per_sec"\n'
    '"tp2","finished","2026-01-01","100","2","8","99","2.5","32768"\n'
    '"tp4","failed","2026-01-01","5","4","8","3","9.5","30000"\n'
    '"tp8","crashed","2026-01-01","5","8","8","","",""\n'
)


def test_a_table_of_runs_has_their_settings_and_last_values() -> None:
    runs = exports.read_csv(RUNS, "")
    assert [(run.name, run.number, run.ended) for run in runs] == [
        ("tp2", 1, "completed"),
        ("tp4", 2, "fail"),
        ("tp8", 3, "fail"),
    ]
    assert [run.settings["tp"] for run in runs] == ["2", "4", "8"]
    assert runs[0].settings["gas"] == "8"
    assert steps(runs[0]).select("step", "loss", "tokens_per_s").rows() == [(99, 2.5, 32768.0)]
    with pytest.raises(ValueError, match="no loss"):
        steps(runs[2])


def test_the_frame_of_the_guide_to_exports_is_read() -> None:
    config = json.loads((RECORDED / "run-nanotron.wandb.json").read_text())["config"]
    summary = {"lm_loss": 2.5, "iteration_step": 24, "tokens_per_sec": 32768.0, "grad_norm": float("nan"), "_step": 11}
    text = csv_of([{"summary": str(summary), "config": str(config), "name": "run-1"}])
    (run,) = exports.read_csv(text, "")
    assert (run.name, run.settings["tp"], run.settings["seq_len"]) == ("run-1", "2", "4096")
    assert steps(run).select("step", "loss").rows() == [(24, 2.5)]


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "step,loss\n1,2\n", "Name,State\nx,y\n", "epoch,step,train_loss\n0,1,2.5\n"]
)
def test_other_tables_are_none(text: str) -> None:
    assert not exports.is_export(text)
    with pytest.raises(ValueError, match="not a table that a tracker exports"):
        exports.read_csv(text, "")


def test_a_damaged_table_says_so() -> None:
    with pytest.raises(ValueError, match=r"."):
        exports.read_csv('_step,_timestamp,loss\n1,2,3,4,5,6\n"', "")
