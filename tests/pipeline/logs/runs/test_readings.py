"""Several readings of the steps of a run directory: those of one run are joined, by their values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.runs.agreement import compare_ratios, tolerances
from tests.pipeline.ingest.lake_of_logs import steps as picotron
from tests.pipeline.ingest.split_run import Run
from tests.pipeline.ingest_in_memory import Tables, tables_of

RUN, OTHER = Run(1, steps=12), Run(2, steps=12)


def found(files: Mapping[str, str]) -> Tables:
    return tables_of({f"run/{name}": text for name, text in files.items()})


def steps_of(tables: Tables) -> dict[str, list[int]]:
    """Steps of each run, by the file that names it."""
    runs = tables["runs"].select("run_id", log=pl.col("source_path").str.strip_prefix("run/"), n="attempt")
    steps = tables["steps"].join(runs, on="run_id", how="right").sort("log", "n", "step")
    return {
        f"{log} {n}": [step for step in part["step"].to_list() if step is not None]
        for (log, n), part in steps.partition_by("log", "n", as_dict=True, maintain_order=True).items()
    }


def huggingface(*losses: float) -> str:
    """A log without bars: nothing in it tells which steps its values belong to."""
    return "".join(
        f"{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 0.001, 'epoch': {number / 100}}}\n"
        for number, loss in enumerate(losses, 1)
    )


def state(values: Mapping[int, float], **further: object) -> str:
    history = [{"epoch": 0.1, "loss": loss, "step": step} for step, loss in values.items()]
    return json.dumps({"log_history": history, "global_step": max(values), "max_steps": 12, **further}, indent=1)


def test_of_two_versions_each_is_the_launch_whose_values_it_has() -> None:
    log = RUN.log(range(12)) + OTHER.log(range(6))
    tables = found(
        {
            "train.log": log,
            "lightning_logs/version_0/metrics.csv": RUN.table(range(12)),
            "lightning_logs/version_0/hparams.yaml": RUN.settings,
            "lightning_logs/version_1/metrics.csv": OTHER.table(range(8)),
            "lightning_logs/version_1/hparams.yaml": OTHER.settings,
        }
    )
    assert steps_of(tables) == {"train.log 1": [*range(1, 13)], "train.log 2": [*range(1, 9)]}
    assert tables["runs"].sort("attempt")["mbs"].to_list() == [1, 2]


def test_steps_of_another_run_are_a_run_of_their_own() -> None:
    tables = found({"train.log": RUN.log(range(12)), "out/metrics.csv": OTHER.table(range(8))})
    assert steps_of(tables) == {"train.log 1": [*range(1, 13)], "out/metrics.csv 2": [*range(1, 9)]}
    assert tables["events"].filter(kind="inconsistent").is_empty()
    assert tables["runs"]["duplicate_of"].null_count() == 2


def test_what_ends_at_the_same_step_with_other_losses_may_be_the_same_run() -> None:
    tables = found({"train.log": RUN.log(range(12)), "out/metrics.csv": OTHER.table(range(12))})
    assert steps_of(tables) == {"train.log 1": [*range(1, 13)], "out/metrics.csv 2": [*range(1, 13)]}
    log, table = tables["runs"].sort("attempt").to_dicts()
    assert (log["duplicate_of"], table["duplicate_of"]) == (None, log["run_id"])
    (event,) = tables["events"].filter(kind="inconsistent").to_dicts()
    assert (event["run_id"], event["source_path"]) == (table["run_id"], "run/out/metrics.csv")
    assert event["text"].startswith("it has the steps of train.log, with another loss for 12 of them")


def test_single_values_that_differ_are_an_event() -> None:
    wrong = RUN.table(range(12)).replace(str(RUN.loss(7)), "3.25")
    tables = found({"train.log": RUN.log(range(12)), "out/metrics.csv": wrong})
    assert steps_of(tables) == {"train.log 1": [*range(1, 13)]}
    (text,) = tables["events"].filter(kind="inconsistent")["text"].to_list()
    assert text.startswith(f"loss of step 8: train.log has {RUN.loss(7)}, ")
    assert text.endswith("has 3.25; the former counts (1 of 12 common steps differ)")
    assert tables["steps"].sort("step")["loss"][7] == RUN.loss(7)


def test_the_richer_source_of_a_column_fills_the_other() -> None:
    table = RUN.table(range(12)).replace("train/loss,lr", "train/loss,grad_norm")
    tables = found({"train.log": RUN.log([0, 5, 11]), "out/metrics.csv": table})
    steps = tables["steps"].sort("step")
    assert steps["grad_norm"].null_count() == 0
    assert steps["learning_rate"].is_not_null().to_list() == [step in (1, 6, 12) for step in range(1, 13)]
    assert dict(steps.select("step", "source_path").iter_rows())[6] == "run/train.log"
    assert dict(steps.select("step", "source_path").iter_rows())[7] == "run/out/metrics.csv"


def test_values_without_steps_get_those_of_the_file_of_steps() -> None:
    values = {4: 7.529, 8: 7.175, 12: 6.964, 16: 6.802, 20: 6.706, 24: 6.599}
    log = huggingface(*values.values())
    assert steps_of(found({"train.log": log})) == {"train.log 1": [1, 2, 3, 4, 5, 6]}
    precise = {step: loss + 0.0002 for step, loss in values.items()}
    assert steps_of(found({"train.log": log, "out/trainer_state.json": state(precise)})) == {"train.log 1": [*values]}
    first = dict(list(precise.items())[:4])  # of a checkpoint: the log went on
    assert steps_of(found({"train.log": log, "out/trainer_state.json": state(first)})) == {"train.log 1": [*values]}


def test_a_table_that_counts_from_one_more_has_the_steps_of_the_log() -> None:
    rows = RUN.table(range(12)).splitlines()
    shifted = [f"0,{int(row.split(',')[1]) + 1},{row.split(',', 2)[2]}" for row in rows[1:]]
    tables = found({"train.log": RUN.log(range(12)), "metrics.csv": "\n".join([rows[0], *shifted])})
    assert steps_of(tables) == {"train.log 1": [*range(1, 13)]}


def test_folders_of_attempts_are_attempts() -> None:
    files = {
        f"attempt_{number}/{rank}/stdout.log": picotron(20 * number + 1, 20 * number + 20, minute=100 * number)
        for number in (0, 1)
        for rank in (0, 1)
    }
    expected = {"attempt_0/0/stdout.log 1": [*range(1, 21)], "attempt_1/0/stdout.log 2": [*range(21, 41)]}
    assert steps_of(found(files)) == expected
    launcher = (
        "W0101 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1"
    )
    assert steps_of(found({"torchrun.log": launcher, **files})) == expected


def test_an_attempt_that_repeats_the_losses_of_the_one_before_is_an_attempt() -> None:
    files = {
        "attempt_0/0/stdout.log": picotron(1, 12, minute=0),
        "attempt_0/1/stderr.log": "Traceback (most recent call last):\nRuntimeError: CUDA error: uncorrectable ECC error\n",
        "attempt_1/0/stdout.log": picotron(1, 20, minute=100),
    }
    tables = found(files)
    assert steps_of(tables) == {
        "attempt_0/0/stdout.log 1": [*range(1, 13)],
        "attempt_1/0/stdout.log 2": [*range(1, 21)],
    }


def test_what_a_wrapper_has_kept_of_the_console_is_no_other_run() -> None:
    log = picotron(1, 20)
    files = {"train.log": log, "wandb/run-20260101_120000-1a2b3c4d/files/output.log": log.replace("[default0]:", "")}
    assert steps_of(found(files)) == {"train.log 1": [*range(1, 21)]}


CANCELLED = "slurmstepd: error: *** STEP 4711.0 ON node1 CANCELLED AT 2026-01-02T01:00:00 DUE TO TIME LIMIT ***\n"


def test_what_slurm_has_kept_of_the_console_is_that_of_the_run() -> None:
    log = picotron(1, 20)
    (run,) = found({"train.log": log, "slurm-4711.out": log + CANCELLED})["runs"].to_dicts()
    assert (run["status"], run["steps_logged"], run["job_id"]) == ("timeout", 20, "4711")
    assert run["source_path"] == "run/train.log"


@pytest.mark.parametrize("begin", [21, 15], ids=["behind the last step", "at the last checkpoint"])
def test_what_slurm_has_kept_of_each_job_is_a_launch(begin: int) -> None:
    first, second = picotron(1, 20), picotron(begin, begin + 19, minute=100)
    jobs = {"slurm-4711.out": first + CANCELLED, "slurm-4712.out": second}
    runs = found(jobs | {"train.log": first + second})["runs"].sort("attempt")
    columns = ("status", "steps_logged", "job_id", "first_step")
    assert runs.select(columns).rows() == [("timeout", 20, "4711", 1), ("truncated", 20, "4712", begin)]


def test_a_crash_in_the_folder_of_logs_is_that_of_the_run() -> None:
    error = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: no such key\n'
    (run,) = found({"train.log": picotron(1, 20), "logs/stderr.log": error})["runs"].to_dicts()
    assert (run["status"], run["steps_logged"]) == ("crash", 20)


def test_a_table_from_long_before_the_launch_is_not_of_it() -> None:
    log = "".join(f"2040-01-01T12:00:0{step}Z {line}\n" for step, line in enumerate(RUN.log(range(3)).splitlines()))
    tables = found({"train.log": log, "out/metrics.csv": RUN.table(range(3, 9))})
    assert sorted(map(len, steps_of(tables).values())) == [3, 6]


@pytest.mark.parametrize("count", [0, 1])
def test_a_table_without_steps_changes_nothing(count: int) -> None:
    table = RUN.table(range(count))
    assert steps_of(found({"train.log": RUN.log(range(4)), "out/metrics.csv": table})) == {
        "train.log 1": [*range(1, 5)]
    }


def micro_losses(count: int, seed: int = 1) -> list[float]:
    """Losses of micro-batches, noisy as they are."""
    rng = random.Random(seed)  # noqa: S311 - noise, not cryptography
    return [7.6 - 1.3 * (1 - math.exp(-number / 30)) + rng.uniform(-0.05, 0.05) for number in range(count)]


def bars(losses: Sequence[float], total: int) -> str:
    """Lightning's bar after each micro-batch of a quarter of a second; nothing in it tells how many make a step."""
    shown = (
        f"\rEpoch 0:  9%|###| {number}/{total} [00:09<00:05,  4.00it/s, v_num=0, train_loss={loss:.3f}]"
        for number, loss in enumerate(losses, 1)
    )
    return "GPU available: False, used: False\n" + "".join(shown)


def logged(losses: Sequence[float], gas: int) -> str:
    """`metrics.csv` of every second optimizer step, each with the loss of its last micro-batch."""
    rows = (f"0,{step},{losses[(step + 1) * gas - 1]}\n" for step in range(1, len(losses) // gas, 2))
    return "".join(["epoch,step,train_loss\n", *rows])


@pytest.mark.parametrize("gas", [2, 3, 8])
def test_a_log_that_counts_micro_batches_is_that_of_the_steps_in_the_file(gas: int) -> None:
    losses = micro_losses(20 * gas)
    tables = found({"train.log": bars(losses, len(losses)), "csv/version_0/metrics.csv": logged(losses, gas)})
    assert steps_of(tables) == {"train.log 1": [*range(20)]}
    (run,) = tables["runs"].to_dicts()
    assert (run["step_basis"], run["gas"], run["step_time_s"]) == ("step", gas, 0.25 * gas)
    setting = tables["settings"].filter(name="gas").select("value", "setting_source")
    assert setting.rows() == [(str(gas), "derived")]
    assert tables["events"].filter(kind="inconsistent").is_empty()


@pytest.mark.parametrize("lag", [0, 3, 9])
def test_such_a_run_is_one_at_every_moment(lag: int) -> None:
    gas, losses = 4, micro_losses(80)
    for count in range(4, 81, 7):
        written = losses[: max(count - lag * gas, 0)]
        files = {"train.log": bars(losses[:count], 80), "csv/version_0/metrics.csv": logged(written, gas)}
        tables = found(files)
        assert tables["runs"].height == 1, count
        # Numbers of batches are never shown as those of steps, nor their times as times of steps.
        (run,) = tables["runs"].to_dicts()
        if run["step_basis"] == "step":
            assert run["last_step"] < count // gas
            assert run["step_time_s"] in (None, 0.25 * gas)


def test_micro_batches_of_another_run_are_not_those_of_the_file() -> None:
    tables = found(
        {"train.log": bars(micro_losses(80), 80), "csv/version_0/metrics.csv": logged(micro_losses(80, seed=2), 4)}
    )
    assert tables["runs"].height == 2
    assert tables["settings"].filter(name="gas").is_empty()


@given(
    ratio=st.integers(2, 64),
    first=st.sampled_from([0, 1]),
    first_micro=st.sampled_from([0, 1]),
    is_last=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_ratio_of_two_counters(ratio: int, first: int, first_micro: int, is_last: bool, seed: int) -> None:
    losses = micro_losses(12 * ratio, seed)
    steps = [(0, n + first, losses[n * ratio + (ratio - 1 if is_last else 0)]) for n in range(12)]
    micro = [(1, n + first_micro, round(loss, 4)) for n, loss in enumerate(losses)]
    rows = pl.DataFrame([*steps, *micro], schema=["reading", "step", "loss"], orient="row")
    (row,) = compare_ratios(tolerances(rows), pl.DataFrame({"first": [0], "second": [1]})).to_dicts()
    assert (row["ratio"], row["agreeing"]) == (ratio, row["common"])
    assert all(
        micro_loss == round(loss, 4)
        for _, step, loss in steps
        for _, number, micro_loss in micro
        if number == ratio * step + row["offset"]
    )


@given(st.lists(st.floats(0.01, 20), min_size=1, max_size=20), st.integers(2, 6), st.booleans())
def test_a_printed_value_is_within_its_tolerance(values: list[float], digits: int, in_decimals: bool) -> None:
    printed = [float(f"{value:.{digits}{'f' if in_decimals else 'g'}}") for value in values]
    known = tolerances(pl.DataFrame({"reading": 1, "loss": printed}, schema={"reading": pl.Int64, "loss": pl.Float64}))
    rows = [row for row in zip(values, known["loss"], known["tolerance"], strict=True) if row[1]]
    # A reading of which all values happen to end in zeros looks coarser than it is.
    assert all(abs(value - loss) <= tolerance * 1.001 for value, loss, tolerance in rows)
