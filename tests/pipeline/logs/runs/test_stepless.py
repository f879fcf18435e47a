"""Launches that are separated by the heading with which each begins its output, also those that logged no step."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.pipeline.ingest_in_memory import tables_of

BEGIN = datetime(2026, 1, 31, 12)


class Trainer:
    """A trainer that appends to one log: a line a minute, or what is asked for."""

    def __init__(self, *, is_timed: bool = True) -> None:
        self.text, self.now, self.is_timed = "", BEGIN, is_timed

    def line(self, text: str, *, seconds: float = 60) -> Trainer:
        self.now += timedelta(seconds=seconds)
        self.text += f"{self.now:%Y-%m-%d %H:%M:%S} - INFO - {text}\n" if self.is_timed else f"{text}\n"
        return self

    def launch(self, *epochs: int, heading: str = "Starting training...", seconds: float = 60) -> Trainer:
        self.line(heading, seconds=seconds)
        for epoch in epochs:
            self.line(f"Epoch {epoch}, Train Loss: {2 + 1 / epoch + len(self.text) % 7 / 100:.4f}")
        return self

    def attempts(self) -> list[tuple[int | None, int | None]]:
        runs = tables_of({"train.log": self.text})["runs"].sort("line_no")
        return list(runs.select("first_step", "last_step").iter_rows())


def epochs(last: int) -> range:
    return range(1, last + 1)


def test_each_heading_begins_an_attempt() -> None:
    log = Trainer().launch(*epochs(9)).launch(*epochs(5)).launch(*epochs(7))
    assert log.attempts() == [(1, 9), (1, 5), (1, 7)]


@pytest.mark.parametrize("stepless", [0, 2, 3])
def test_launches_without_a_step_are_attempts(stepless: int) -> None:
    log = Trainer()
    lasts = [9, 5, 7, 8]
    lasts.insert(stepless, 0)
    for last in lasts:
        log.launch(*epochs(last))
    assert log.attempts() == [(1, last) if last else (None, None) for last in lasts]


def test_launches_behind_the_last_step_are_attempts() -> None:
    log = Trainer().launch(*epochs(9)).launch(*epochs(6)).launch().launch()
    assert log.attempts() == [(1, 9), (1, 6), (None, None), (None, None)]


def test_dots_behind_a_heading_are_no_part_of_it() -> None:
    log = Trainer().launch(heading="Starting training").launch(*epochs(9)).launch().launch(*epochs(6))
    assert log.attempts() == [(None, None), (1, 9), (None, None), (1, 6)]


def test_processes_of_one_launch_print_its_heading_together() -> None:
    log = Trainer().launch(*epochs(9)).launch(seconds=60).launch(seconds=1).launch(*epochs(6), seconds=1)
    assert log.attempts() == [(1, 9), (1, 6)]


def test_without_times_launches_without_a_step_are_not_told_from_processes() -> None:
    log = Trainer(is_timed=False).launch(*epochs(9)).launch().launch(*epochs(6))
    assert log.attempts() == [(1, 9), (1, 6)]


def test_the_heading_of_an_epoch_begins_no_attempt() -> None:
    log = Trainer()
    for epoch in epochs(6):
        log.line("Training the model")
        for batch in range(20, 101, 20):
            log.line(f"epoch {epoch} batch {batch}/100 loss {3 / epoch + 1 / batch:.4f}")
    assert len(log.attempts()) == 1


def test_a_training_that_goes_on_is_known_by_its_settings() -> None:
    log = Trainer()
    for first in (1, 11, 21):
        log.line("Using device cuda").line("Building the model").line("batch_size: 32")
        for step in range(first, first + 10):
            log.line(f"step {step} loss {2 + 1 / step:.4f}")
    assert log.attempts() == [(1, 10), (11, 20), (21, 30)]


def test_each_launch_may_say_that_it_is_done() -> None:
    log = Trainer()
    for last in (9, 5, 7):
        log.launch(*epochs(last)).line("Training finished.")
    runs = tables_of({"train.log": log.text})["runs"].sort("attempt")
    assert runs["status"].to_list() == ["completed"] * 3


CONFIGURED = ["Using device cuda", "Building the model", "batch_size: 32"]


def failing(*, is_reported: bool = False) -> list[str]:
    """What a launch that fails prints instead of steps; with the launcher's report, if it has one."""
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 61, in <module>',
        "FileNotFoundError: train.bin",
    ]
    report = ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "train.py FAILED"]
    return raised + report * is_reported


@pytest.mark.parametrize("last_words", [failing(), failing(is_reported=True), ["Killed"]])
def test_without_times_a_launch_has_ended_that_failed_or_was_killed_before_the_one_that_trains(
    last_words: list[str],
) -> None:
    log = Trainer(is_timed=False)
    for _ in range(2):
        for line in [*CONFIGURED, *last_words]:
            log.line(line)
    for line in CONFIGURED:
        log.line(line)
    for step in range(1, 7):
        log.line(f"step {step} loss {2 + 1 / step:.4f}")
    assert log.attempts() == [(None, None), (None, None), (1, 6)]


def test_without_times_the_processes_of_a_launch_that_fails_are_one_attempt() -> None:
    log = Trainer(is_timed=False)
    for line in [*CONFIGURED, *failing()] * 4:
        log.line(line)
    assert log.attempts() == [(None, None)]


def test_each_launch_of_a_log_has_its_own_settings() -> None:
    log = Trainer()
    for first, batch in ((1, 32), (9, 16), (17, 8)):
        log.line("Using device cuda").line("Building the model").line(f"batch_size: {batch}").line("seq_len: 2048")
        for step in range(first, first + 8):
            log.line(f"step {step} loss {2 + 1 / step:.4f}")
    runs = tables_of({"train.log": log.text})["runs"].sort("line_no")
    assert runs.select("mbs", "seq_len").rows() == [(32, 2048), (16, 2048), (8, 2048)]
