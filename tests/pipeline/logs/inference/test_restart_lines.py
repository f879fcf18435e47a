"""Launches of a script that appends to one log, parted by the line with which each begins."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.pipeline.ingest_in_memory import tables_of

BEGIN = datetime(2026, 9, 30, 14, 37, 12)
HEAD = "ファインチューニングプロセスを開始します"


def stamped(lines: list[tuple[float, str]]) -> str:
    """Lines as Python's `logging` writes them, each so many seconds after the one before."""
    now, text = BEGIN, ""
    for seconds, line in lines:
        now += timedelta(seconds=seconds)
        text += f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} - INFO - __main__ - {line}\n"
    return text


def launch(
    *, silence_s: float, head: str = HEAD, steps: range = range(0), rule: bool = False
) -> list[tuple[float, str]]:
    begin = [(silence_s, "=" * 40), (0.0, head)] if rule else [(silence_s, head)]
    setup = [(0.5, "loading tokenizer"), (0.4, "loading model"), (2.0, "tokenizing the data set")]
    return [*begin, *setup, *((0.3, f"step {step} loss {9 - step / 10:.3f}") for step in steps)]


@pytest.mark.parametrize("rule", [False, True])
def test_launches_that_died_before_their_first_step_are_runs_of_their_own(rule: bool) -> None:
    lines = [line for silence_s in (0, 213, 62, 4_000, 361) for line in launch(silence_s=silence_s, rule=rule)]
    assert tables_of({"training.log": stamped(lines)})["runs"].height == 5


def test_a_launch_right_behind_a_failed_one_does_not_hide_the_others() -> None:
    pauses = [0, *(40 + 9 * at for at in range(30)), 3, 300]
    lines = [line for silence_s in pauses for line in launch(silence_s=silence_s)]
    assert tables_of({"training.log": stamped(lines)})["runs"].height >= len(pauses) - 1


def test_logs_that_were_put_together_in_another_order_are_parted_too() -> None:
    lines = [line for silence_s in (0, 213, 62, -86_400, 361) for line in launch(silence_s=silence_s)]
    assert tables_of({"training.log": stamped(lines)})["runs"].height >= 4


def test_launches_with_and_without_steps_are_told_apart_by_the_line_they_begin_with() -> None:
    parts = [(0, range(0)), (90, range(1, 31)), (600, range(0)), (3_600, range(1, 21))]
    lines = [line for silence_s, steps in parts for line in launch(silence_s=silence_s, steps=steps)]
    runs = tables_of({"training.log": stamped(lines)})["runs"].sort("attempt")
    assert runs["last_step"].to_list() == [None, 30, None, 20]


def test_an_older_script_may_have_begun_with_another_line() -> None:
    lines = [(0.0, "loading model"), *(line for silence_s in (500, 213, 400) for line in launch(silence_s=silence_s))]
    assert tables_of({"training.log": stamped(lines)})["runs"].height >= 3


def test_a_line_without_a_silence_in_front_or_above_steps_that_count_on_begins_no_launch() -> None:
    epochs = [line for at in range(4) for line in launch(silence_s=300, steps=range(20 * at + 1, 20 * at + 21))]
    assert tables_of({"training.log": stamped(epochs)})["runs"].height == 1
    at_once = [line for _ in range(4) for line in launch(silence_s=1)]
    assert tables_of({"training.log": stamped([*at_once, (1, "step 1 loss 2.5")])})["runs"].height <= 1


def test_a_jobs_output_in_which_a_driver_starts_processes_is_no_log_of_launches() -> None:
    lines = [line for silence_s in (0, 213, 62, 4_000, 361) for line in launch(silence_s=silence_s)]
    text = "".join(f"{line}\nprepared sample\n" for line in stamped(lines).splitlines())
    assert tables_of({"slurm.out": text})["runs"].height <= 1
