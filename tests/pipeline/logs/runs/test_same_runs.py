"""Files of steps and logs that lie where names do not tell which belong together."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.logs.runs.same_runs import near_each_other, same_runs
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.tables.runs import STEPS as RATED
from tests.pipeline.ingest.split_run import Run


def steps(**runs: Run) -> pl.DataFrame:
    rows = [(name, step, run.loss(step)) for name, run in runs.items() for step in range(run.steps)]
    return pl.DataFrame(rows, schema=["run_id", "step", "loss"], orient="row")


def folders(**runs: str) -> pl.DataFrame:
    return pl.DataFrame({"run_id": list(runs), "run_dir": list(runs.values())})


def found(
    files: dict[str, str], logs: dict[str, str], rows: pl.DataFrame, paths: dict[str, str] | None = None, **facts: Any
) -> dict[str, str]:
    """`duplicate_of` by file; `paths` and `facts` (a column of `runs`, and its values by run) are of some runs."""
    ours, theirs = folders(**files), folders(**logs)
    named = {**dict.fromkeys(files, "h.json"), **dict.fromkeys(logs, "a.log"), **(paths or {})}
    runs = pl.concat([ours, theirs]).with_columns(
        source_path=pl.col("run_id").replace_strict(named),
        **{
            column: pl.col("run_id").replace_strict(values, default=None, return_dtype=RUNS.polars_schema[column])
            for column, values in facts.items()
        },
    )
    measured = RATED.conform(rows)
    return dict(same_runs(near_each_other(ours, theirs), measured, RUNS.conform(runs)).iter_rows())


FILES = {"out_a": "/s/sweep/a/out", "out_b": "/s/sweep/b/out"}
LOGS = {"log_1": "/s/sweep/logs", "log_2": "/s/sweep/logs"}


def test_each_file_is_of_the_log_whose_losses_it_has() -> None:
    rows = steps(out_a=Run(1), out_b=Run(2), log_1=Run(2), log_2=Run(1))
    assert found(FILES, LOGS, rows) == {"out_a": "log_2", "out_b": "log_1"}


def test_of_two_logs_with_the_same_losses_it_is_unknown_which() -> None:
    rows = steps(out_a=Run(1), out_b=Run(2), log_1=Run(1), log_2=Run(1))
    assert found(FILES, LOGS, rows) == {}


def test_a_training_that_was_taken_up_again_has_a_log_for_each_start() -> None:
    run = Run(1, steps=30)
    whole = steps(out_a=run, log_1=run, log_2=run, log_3=Run(2))
    part = {"log_1": (0, 9), "log_2": (8, 30)}
    rows = pl.concat(
        whole.filter(pl.col("run_id") == name, pl.col("step").is_between(*part.get(name, (0, 10_000))))
        for name in whole["run_id"].unique(maintain_order=True)
    )
    logs = {**LOGS, "log_3": "/s/sweep/logs"}
    assert found({"out_a": "/s/sweep/a/out"}, logs, rows) == {"out_a": "log_2"}


def test_two_files_with_the_losses_of_one_log_stay() -> None:
    rows = steps(out_a=Run(1), out_b=Run(1), log_1=Run(1), log_2=Run(2))
    assert found(FILES, LOGS, rows) == {}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_few_steps_are_no_proof(count: int) -> None:
    rows = steps(out_a=Run(1, steps=count), out_b=Run(2), log_1=Run(1), log_2=Run(3))
    assert found(FILES, LOGS, rows) == {}


def test_a_log_of_another_sweep_is_too_far() -> None:
    rows = steps(out_a=Run(1), log_1=Run(1))
    assert found({"out_a": "/a/b/c/d/e"}, {"log_1": "/a/log"}, rows) == {}
    assert found({"out_a": "/a/b/c/d"}, {"log_1": "/a/log"}, rows) == {"out_a": "log_1"}


def test_the_nearest_log_counts() -> None:
    rows = steps(out_a=Run(1), log_1=Run(1), log_2=Run(1))
    assert found({"out_a": "/s/x/a/out"}, {"log_1": "/s/x/a/logs", "log_2": "/s/y/logs"}, rows) == {"out_a": "log_1"}


def test_runs_of_one_seed_are_told_apart_by_what_their_settings_contradict() -> None:
    rows = steps(out_a=Run(1), out_b=Run(1), log_1=Run(1), log_2=Run(1))
    facts = {"out_a": 4, "out_b": 2, "log_1": 2}
    assert found(FILES, LOGS, rows, tp=facts) == {"out_a": "log_2", "out_b": "log_1"}


def test_runs_of_one_seed_are_told_apart_by_their_names() -> None:
    files = {"out_a": "/s/mlflow.db/1-tp2", "out_b": "/s/mlflow.db/2-tp4"}
    logs = {"log_1": "/s/logs", "log_2": "/s/tp2"}
    paths = {"log_1": "/s/logs/tp4.log", "log_2": "/s/tp2/train.log"}
    rows = steps(out_a=Run(1), out_b=Run(1), log_1=Run(1), log_2=Run(1))
    assert found(files, logs, rows, paths) == {"out_a": "log_2", "out_b": "log_1"}


def test_runs_of_one_seed_are_told_apart_by_their_rates() -> None:
    seeds = {"out_a": 1, "out_b": 2, "log_1": 2, "log_2": 1}
    rows = steps(**dict.fromkeys(seeds, Run(1)))
    seed = pl.col("run_id").replace_strict(seeds, return_dtype=pl.Int64)
    rows = rows.with_columns(tokens_per_s=1000.0 * seed + pl.col("step"))
    assert found(FILES, LOGS, rows) == {"out_a": "log_2", "out_b": "log_1"}


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_tracker_that_counts_from_another_number_is_known(shift: int) -> None:
    rows = steps(out_a=Run(1), log_1=Run(1), log_2=Run(2))
    is_file = pl.col("run_id") == "out_a"
    rows = rows.with_columns(step=pl.col("step") + pl.when(is_file).then(shift).otherwise(0))
    assert found({"out_a": "/s/sweep/a/out"}, LOGS, rows) == {"out_a": "log_1"}


def test_two_trackers_of_one_training_are_both_its_log() -> None:
    rows = steps(out_a=Run(1), out_b=Run(1), log_1=Run(1), log_2=Run(2))
    paths = {"out_a": "/s/sweep/a/out/events.out.tfevents.1.host", "out_b": "/s/sweep/b/out/run-1.wandb"}
    assert found(FILES, LOGS, rows, paths) == {"out_a": "log_1", "out_b": "log_1"}


def test_a_loss_that_stays_the_same_proves_nothing() -> None:
    rows = steps(out_a=Run(1), log_1=Run(1)).with_columns(loss=pl.lit(2.5))
    assert found({"out_a": "/s/sweep/a/out"}, {"log_1": "/s/sweep/logs"}, rows) == {}
