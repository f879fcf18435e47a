"""Restarts and lines out of order, from the order of the steps alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.runs.attempts import number_attempts
from sweepscope.pipeline.logs.runs.launches import LINES
from sweepscope.pipeline.logs.runs.restarts import Restarts, restarts
from tests.pipeline.ingest_in_memory import tables_of
from tests.properties import draws

Rows = list[tuple[int, float]]
"""Steps with the seconds at which they were logged."""


def frame(rows: Rows, losses: Sequence[float] | None = None, *, timed: bool = False) -> pl.DataFrame:
    begin = datetime(2026, 1, 1)
    steps = {
        "source": [0] * len(rows),
        "line_no": list(range(1, len(rows) + 1)),
        "step": [step for step, _ in rows],
        "loss": losses,
        "ts": [begin + timedelta(seconds=second) if timed else None for _, second in rows],
    }
    return conform(pl.DataFrame({name: values for name, values in steps.items() if values is not None}), STEP_FACTS)


def noise(rows: Rows, seed: int = 0) -> list[float]:
    source = random.Random(seed)  # noqa: S311 - losses, no secrets
    return [source.uniform(2, 3) for _ in rows]


def judged(steps: Sequence[int], losses: Sequence[float] | None = None) -> Restarts:
    rows = [(step, 0.0) for step in steps]
    return restarts(frame(rows, noise(rows) if losses is None else losses).with_columns(launch=pl.lit(0)))


def begins(steps: Sequence[int], losses: Sequence[float] | None = None) -> list[int]:
    """Rows with which a training begins again."""
    return [row for row, begins in enumerate(judged(steps, losses).begins) if begins]


def attempts(rows: Rows, losses: Sequence[float], *, timed: bool) -> list[list[int]]:
    """The steps of each attempt."""
    none = pl.DataFrame(schema=LINES)
    steps, _, _ = number_attempts(frame(rows, losses, timed=timed), none, none, pl.Series("source", [0]), none)
    return [part["step"].to_list() for part in steps.partition_by("run", maintain_order=True)]


def one_to(last: int, first: int = 1, stride: int = 1) -> list[int]:
    return list(range(first, last + 1, stride))


def interleaved(source: random.Random, ranks: int, first: int, last: int, lines: float) -> Rows:
    """Steps of several ranks that log all of them, each of its lines up to so many lines late."""
    rows = []
    for _ in range(ranks):
        arrival = 0.0
        for step in range(first, last + 1):
            arrival = max(arrival, step + source.uniform(0, lines) / ranks)
            rows.append((arrival, step))
    return [(step, arrival) for arrival, step in sorted(rows, key=lambda row: row[0])]


class TestOneProcess:
    @pytest.mark.parametrize(
        ("steps", "rows"),
        [
            (one_to(10) + one_to(12, 8), [10]),
            (one_to(10) + one_to(12), [10]),
            (one_to(4) + one_to(2) + one_to(3), [4, 6]),
            (one_to(10) * 12, list(range(10, 120, 10))),
            (one_to(10) + one_to(10, 5) * 3, [10, 16, 22]),
            (one_to(100) + one_to(110, 11), [100]),
            (one_to(100, 10, 10) + one_to(121, 91, 10), [10]),
            (one_to(100) + one_to(200, 51, 10), [100]),
            ([1, 1, 2, 2, 3, 3, 2, 2, 3, 3, 4, 4], [6]),
            ([1, 2, 3, 2], [3]),
        ],
        ids=[
            *("from a checkpoint", "from the beginning", "three that die", "twelve jobs", "a loop", "far back"),
            *("between the logged steps", "logs less often now", "two loggers", "one step after it"),
        ],
    )
    def test_a_fall_is_a_restart(self, steps: list[int], rows: list[int]) -> None:
        assert begins(steps) == rows

    def test_an_evaluation_with_a_counter_of_its_own_is_none_and_no_step(self) -> None:
        steps = [100, *one_to(20), 200, *one_to(20), 300, *one_to(20), 400]
        found = judged(steps)
        assert not found.begins.any()
        assert [step for step, is_other in zip(steps, found.is_other, strict=True) if not is_other] == [
            *(100, 200, 300, 400)
        ]

    def test_a_line_that_comes_late_is_none(self) -> None:
        found = judged([*one_to(10), 12, 11, *one_to(20, 13)])
        assert not found.begins.any()
        assert not found.is_other.any()

    def test_copies_of_all_lines_are_none(self) -> None:
        rows = [(step, 0.0) for step in one_to(10)]
        assert begins(one_to(10) * 3, noise(rows) * 3) == []

    def test_the_same_losses_again_in_a_training_that_ends_earlier_are_one(self) -> None:
        losses = noise([(step, 0.0) for step in one_to(10)])
        assert begins(one_to(10) + one_to(4), losses + losses[:4]) == [10]

    def test_epochs_that_count_from_1_are_one_training(self) -> None:
        steps = one_to(30) * 2 + one_to(10)
        found = judged(steps, [10 - step / 20 for step in range(70)])
        assert not found.begins.any()
        assert [step + more for step, more in zip(steps, found.offset, strict=True)] == one_to(70)

    @pytest.mark.parametrize(("fall", "is_one"), [(0.3, True), (0.0, False)])
    def test_many_noisy_epochs_are_one_training_where_the_loss_comes_down_over_them(
        self, fall: float, is_one: bool
    ) -> None:
        rows: Rows = [(step, 0) for _ in range(60) for step in range(200, 1601, 200)]
        losses = [loss / 3 - fall * at / len(rows) for at, loss in enumerate(noise(rows))]
        found = restarts(frame(rows, losses).with_columns(launch=0))
        assert int(found.begins.sum()) == (0 if is_one else 59)
        assert int(found.offset[-1]) == (59 * 1600 if is_one else 0)

    def test_trainings_whose_loss_begins_anew_are_no_epochs(self) -> None:
        found = judged(
            one_to(30) * 3, [10 - step / 20 for step in one_to(30)] * 2 + [9 - step / 19 for step in range(30)]
        )
        assert found.offset.tolist() == [0] * 90


class TestProcesses:
    def test_the_first_lines_alone_are_out_of_order(self) -> None:
        assert begins([1, 2, 1, 2, *(step for step in one_to(30, 3) for _ in range(2))]) == []

    def test_blocks_of_buffered_lines(self) -> None:
        blocks = [one_to(first + 39, first) for first in range(1, 200, 40)]
        assert begins([step for block in blocks for step in block * 4]) == []

    def test_a_restart_of_all(self) -> None:
        twice = [step for step in one_to(20) for _ in range(2)]
        again = [step for step in one_to(30, 16) for _ in range(2)]
        assert begins([1, 2, 1, 2, *twice[4:], *again]) == [40]


@given(st.integers(2, 8), st.integers(4, 40), st.floats(0, 3), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=draws(300), deadline=None)
def test_ranks_that_log_out_of_order_are_one_attempt_with_each_step_once(
    ranks: int, last: int, late: float, timed: bool, source: random.Random
) -> None:
    rows = interleaved(source, ranks, 1, last, late * ranks)
    steps = [step for step, _ in rows]
    assume(steps != one_to(last) * ranks)  # nothing but times and losses tells these from trainings one by one
    assert attempts(rows, noise(rows), timed=timed) == [one_to(last)]


@given(st.integers(2, 6), st.integers(2, 20), st.floats(0, 3), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=draws(200), deadline=None)
def test_a_restart_of_ranks_that_log_out_of_order_is_a_second_attempt(
    ranks: int, back: int, late: float, timed: bool, source: random.Random
) -> None:
    assume(back > late + 1)  # otherwise no step falls
    before = interleaved(source, ranks, 1, 60, late * ranks)
    after = [(step, at + 100) for step, at in interleaved(source, ranks, 61 - back, 100, late * ranks)]
    found = attempts(before + after, noise(before + after), timed=timed)
    assert len(found) == 2
    assert abs(found[0][-1] - 60) <= late + 1
    assert found[1][-1] == 100


stretches = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), min_size=1, max_size=5)


@given(stretches, st.sampled_from([1, 5, 10]), st.integers(1, 2), st.booleans())
@example([(0.0, 3), (0.0, 3), (0.0, 3)], 1, 1, True)
@example([(0.0, 2), (0.5, 2), (0.5, 1), (0.0, 2)], 1, 1, True)
@settings(max_examples=draws(300), deadline=None)
def test_restarts_from_the_beginning_or_a_checkpoint_are_attempts(
    parts: list[tuple[float, int]], stride: int, loggers: int, timed: bool
) -> None:
    trainings: list[list[int]] = []
    for back, more in parts:
        known = trainings[-1] if trainings else [stride]
        first = known[int(back * (len(known) - 1))] if len(known) > 1 else stride
        trainings.append(one_to(first + more * stride, first, stride))
    assume(all(after[0] < before[-1] for before, after in pairwise(trainings)))
    assume(timed or len(trainings) < 3)  # of more, some orders look like buffered blocks of several processes
    steps = [step for training in trainings for step in training for _ in range(loggers)]
    lengths = [len(training) * loggers for training in trainings]
    pauses = [10.0 * number for number, length in enumerate(lengths) for _ in range(length)]
    rows = [(step, second + pause) for second, (step, pause) in enumerate(zip(steps, pauses, strict=True))]
    assert attempts(rows, noise(rows), timed=timed) == trainings


NANOGPT = "iter {}: loss {:.4f}, time {:.2f}ms, mfu 30.12%\n"


def test_ranks_that_redraw_their_bars_now_and_then_are_one_attempt() -> None:
    """Each draws some steps once and others twice, and some ranks' redraws come behind those of the next step."""
    source = random.Random(8)  # noqa: S311 - order of lines, no secrets
    steps = []
    for step in range(1, 200, 2):
        is_mixed = step % 40 == 1 and step > 1
        pair = [step, step + 1] * 8 if is_mixed else [step] * 8 + [step + 1] * 8
        steps += [one for one in pair for _ in range(source.choice([1, 2]))]
    assert begins(steps) == []
    restarted = [*steps, *(step for step in steps if step > 150)]
    assert begins(restarted) == [len(steps)]


def test_four_processes_that_append_to_one_file_are_one_run() -> None:
    rows = interleaved(random.Random(7), 4, 0, 120, 9)  # noqa: S311 - no secrets
    log = "".join(NANOGPT.format(step, 9 - step / 50 + rank / 1e3, 90 + rank) for rank, (step, _) in enumerate(rows))
    tables = tables_of({"train.log": log})
    assert tables["runs"].select("attempt", "first_step", "last_step", "steps_logged").rows() == [(1, 0, 120, 121)]
    assert tables["steps"]["step"].to_list() == list(range(121))


def test_lines_of_another_counter_are_left_out_and_counted() -> None:
    evaluation = [NANOGPT.format(step, 5.0, 1) for step in range(1, 21)]
    training = [NANOGPT.format(step, 9 - step / 500, 90) for step in range(100, 700, 100)]
    log = "".join(line + "".join(evaluation) for line in training[:-1]) + training[-1]
    tables = tables_of({"train.log": log})
    assert tables["runs"].select("first_step", "last_step", "steps_logged").rows() == [(100, 600, 6)]
    (reject,) = tables["rejects"].filter(pl.col("table") == "steps").iter_rows(named=True)
    assert (reject["line_no"], reject["raw"]) == (2, "step 1; 100 such lines in the file")
    assert "another counter" in reject["reason"]
