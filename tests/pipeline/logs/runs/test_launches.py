"""Attempts that begin where something else than the steps says so."""

from __future__ import annotations

import pytest

from tests.pipeline.ingest_in_memory import tables_of

STEP = (
    " [2024-05-27 11:{minute:02d}:00] iteration {step:8d}/     100 | consumed samples: {step:12d} | elapsed time per "
    + (
        "iteration (ms): 1000.0 | learning rate: 1.0E-04 | global batch size:     8 | lm loss: {loss:.6E} | loss scale: 1.0 |\n"
    )
)
ARGUMENTS = {"micro_batch_size": 1, "global_batch_size": 8, "seq_length": 128, "num_layers": 2, "hidden_size": 64}
DUMP = "".join(f"  {name} {'.' * (48 - len(name))} {value}\n" for name, value in ARGUMENTS.items())
BANNER = "------------------------ arguments ------------------------\n"


def steps(first: int, last: int, *, minute: int = 0) -> str:
    return "".join(STEP.format(step=step, minute=minute, loss=9 - step / 100) for step in range(first, last + 1))


def attempts(text: str) -> list[tuple[object, ...]]:
    runs = tables_of({"train.log": text})["runs"].sort("attempt")
    return runs.select("line_no", "first_step", "last_step").rows()


def test_a_configuration_that_is_dumped_again_begins_an_attempt() -> None:
    assert attempts(DUMP + steps(1, 4) + DUMP + steps(5, 8)) == [(1, 1, 4), (10, 5, 8)]


def test_two_arguments_of_it_do_not() -> None:
    again = "".join(DUMP.splitlines(keepends=True)[:2])
    assert attempts(DUMP + steps(1, 4) + again + steps(5, 8)) == [(1, 1, 8)]


@pytest.mark.parametrize(
    ("end", "parts"),
    [
        ("slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2024-05-27T11:00:04 DUE TO TIME LIMIT ***\n", 2),
        ("saving a checkpoint\n", 1),
    ],
)
def test_the_last_step_again_is_another_attempt_behind_an_end(end: str, parts: int) -> None:
    assert len(attempts(steps(1, 4) + end + steps(4, 8))) == parts


RAISED = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\nRuntimeError: loss is NaN\n'


def test_the_last_step_again_is_another_attempt_behind_an_exception_of_the_only_process() -> None:
    assert len(attempts(steps(1, 12) + RAISED + steps(12, 20))) == 2
    assert len(attempts(steps(1, 12) + RAISED + steps(13, 20))) == 1


def test_the_last_step_again_is_that_of_another_rank_where_each_prints_it() -> None:
    ranks = "".join(steps(step, step) * 4 for step in range(1, 12))
    assert len(attempts(ranks + steps(12, 12) + RAISED + steps(12, 12) * 3)) == 1


def test_steps_that_go_on_behind_an_end_are_on_their_way() -> None:
    end = "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2024-05-27T11:00:04 ***\n"
    assert len(attempts(steps(1, 4) + end + steps(5, 6))) == 1


def test_ranks_that_announce_themselves_one_after_the_other_are_one_attempt() -> None:
    first = [BANNER + steps(1, 1) for _ in range(4)]
    assert attempts("".join(first) + steps(2, 2) * 4 + steps(3, 9) * 4) == [(1, 1, 9)]


def test_launches_that_die_after_their_first_step_are_attempts() -> None:
    died = BANNER + steps(1, 1) + "srun: error: n1: task 0: Exited with exit code 1\n"
    assert len(attempts(died * 3)) == 3


DONE = "[after training is done] datetime: 2024-05-27 11:05:00\n"
FAILURE = 'Traceback (most recent call last):\n  File "pretrain_gpt.py", line 7, in <module>\nValueError: no data\n'


@pytest.mark.parametrize(
    ("behind", "count"),
    [
        pytest.param(DONE + DUMP, 1, id="an evaluation"),
        pytest.param(DONE + DUMP + "perplexity: 7.31\n" + DUMP, 1, id="two evaluations"),
        pytest.param(DONE + DUMP + FAILURE, 2, id="a launch that failed"),
        pytest.param(DONE + DUMP + steps(1, 4, minute=7), 2, id="a launch that trains"),
        pytest.param(DUMP, 2, id="a launch behind a training that did not end"),
        pytest.param(steps(5, 100) + DUMP + "perplexity: 7.31\n", 1, id="an evaluation behind the last planned step"),
        pytest.param(steps(5, 100) + DUMP + FAILURE, 2, id="a launch behind it that failed"),
    ],
)
def test_a_configuration_that_is_dumped_behind_the_end_of_a_training_is_of_an_evaluation(
    behind: str, count: int
) -> None:
    assert len(attempts(DUMP + steps(1, 4) + behind)) == count


@pytest.mark.parametrize(("second", "parts"), [("14:55:13", 2), ("14:53:15", 1)])
def test_a_launch_long_after_another_one_is_no_rank_of_it(second: str, parts: int) -> None:
    """Of which one step was logged: a further rank logs that step, too, but begins when the first one does."""

    def launch(clock: str, stepped: str, *, last: int) -> str:
        head = f"2026-02-13 {clock},611 - main - INFO - Loading the configuration\n"
        head += f"2026-02-13 {clock},613 - main - INFO - batch_size: 4\n"
        shown = (
            f"2026-02-13 {stepped},{step:03d} - main - INFO - step {step}, loss {9 - step / 100}\n"
            for step in range(1, last + 1)
        )
        return head + "".join(shown)

    text = launch("14:53:12", "14:54:54", last=1) + launch(second, "14:56:22", last=40)
    assert len(attempts(text)) == parts
