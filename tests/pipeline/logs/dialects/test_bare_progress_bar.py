"""Scripts of one's own of which only the progress bar tells the loss."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.pipeline.logs.logs import run_of, tables_of


def bar(done: int, total: int, seconds: int, *, loss: float | None = 2.5, name: str = "Epoch 1: ") -> str:
    said = f", loss={loss}" if loss is not None else ""
    clock = f"{seconds // 60:02d}:{seconds % 60:02d}"
    return f"\r{name}{100 * done // total:3d}%|###   | {done}/{total} [{clock}<02:20,  9.99s/it{said}, lr=0.001]"


def rows_of(directory: Path, text: str) -> list[tuple[object, ...]]:
    return tables_of(directory, text)["steps"].sort("line_no", "step").select("step", "loss", "step_time_s").rows()


def test_steps_over_epochs(tmp_path: Path) -> None:
    epochs = ("".join(bar(n, 4, 40 * n, loss=9 - n - 4 * e) for n in range(1, 5)) + "\n" for e in range(2))
    assert rows_of(tmp_path, "".join(epochs)) == [
        (1, 8.0, None),
        (2, 7.0, 40.0),
        (3, 6.0, 40.0),
        (4, 5.0, 40.0),
        (5, 4.0, None),
        (6, 3.0, 40.0),
        (7, 2.0, 40.0),
        (8, 1.0, 40.0),
    ]


def test_a_loss_set_within_the_loop_is_drawn_behind_the_count_before(tmp_path: Path) -> None:
    drawn = [(0, 3.0), (1, 3.0), (1, 2.0), (2, 2.0), (2, 1.0)]
    assert rows_of(tmp_path, "".join(bar(n, 9, n, loss=x) for n, x in drawn) + "\n") == [(1, 3.0, None), (2, 2.0, None)]


def test_a_loss_set_behind_the_update_is_drawn_last(tmp_path: Path) -> None:
    drawn = [(1, 3.0), (2, 3.0), (2, 2.0), (3, 2.0), (3, 1.0)]
    found = rows_of(tmp_path, "".join(bar(n, 9, n, loss=x) for n, x in drawn) + "\n")
    assert [row[:2] for row in found] == [(1, 3.0), (2, 2.0), (3, 1.0)]


def test_a_run_with_its_outcome(tmp_path: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    run = run_of(tmp_path, "".join(bar(n, 90, 2 * n) for n in range(40)) + "\n" + oom)
    assert (run["framework"], run["status"], run["last_step"], run["last_loss"]) == ("other", "oom", 39, 2.5)
    assert run["step_time_s"] == 2.0
    assert "steps_planned" not in run


def test_a_bar_that_broke_off_and_one_that_begins_anew_are_two_attempts(tmp_path: Path) -> None:
    anew = "".join(bar(step, 90, step, loss=2.4) for step in (1, 2, 3))
    runs = tables_of(tmp_path, bar(1, 90, 1) + bar(2, 90, 2) + "\n" + anew + "\n")["runs"].sort("attempt")
    assert runs.select("attempt", "last_step").rows() == [(1, 2), (2, 3)]


def test_a_bar_that_is_closed_behind_a_traceback_tells_of_no_progress(tmp_path: Path) -> None:
    failure = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nValueError: 3 rows\n'
    run = run_of(tmp_path, bar(1, 9, 10) + bar(2, 9, 20) + failure + bar(2, 9, 20) + "\n")
    assert (run["status"], run["status_evidence"]) == ("crash", "ValueError: 3 rows")


def test_an_evaluations_bar_is_another_one(tmp_path: Path) -> None:
    beside = bar(5, 5, 50, name="Validation: ") + bar(3, 3, 9, name="")
    text = bar(1, 9, 10) + beside + bar(2, 9, 20) + "\n" + beside + "\n"
    assert [row[0] for row in rows_of(tmp_path, text)] == [1, 2]


@pytest.mark.parametrize("ranks", [2, 8])
def test_ranks_that_draw_the_same_bar_are_one_training(tmp_path: Path, ranks: int) -> None:
    source = random.Random(ranks)  # noqa: S311 - arrival times, no secrets
    arrivals = (itertools.accumulate((n + source.uniform(0, 1.4) for n in range(1, 91)), max) for _ in range(ranks))
    drawn = sorted((arrival, n) for of_rank in arrivals for n, arrival in enumerate(of_rank, 1))
    text = "".join(bar((n - 1) % 30 + 1, 30, n) for _, n in drawn) + "\n"
    assert [row[0] for row in rows_of(tmp_path, text)] == list(range(1, 91))


def test_bars_of_trainings_beside_each_other_tell_no_step(tmp_path: Path) -> None:
    text = "".join(bar(n + shift, 90, n) for n in range(1, 40) for shift in (20, 0)) + "\n"
    assert rows_of(tmp_path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Map:  50%|#####     | 45/90 [01:00<01:00,  1.33s/it]",
        "Loading checkpoint shards: 100%|##########| 4/4 [00:10<00:00,  2.50s/it]",
    ],
)
def test_a_bar_without_a_loss_is_no_run(tmp_path: Path, text: str) -> None:
    assert tables_of(tmp_path, text + "\n", name="bars.txt")["runs"].is_empty()


def test_whoever_is_known_otherwise_reads_its_own_bars(tmp_path: Path) -> None:
    line = "Epoch 0:  50%|#####     | {}/10 [00:05<00:05,  1.00{}, loss=2.5, v_num=0, train_loss=2.50]\n"
    assert run_of(tmp_path, line.format(5, "it/s") + line.format(6, "s/it"))["framework"] == "lightning"


def test_a_script_that_fails_under_accelerate_is_a_run_with_the_options_of_its_command(tmp_path: Path) -> None:
    text = """\
        The following values were not passed to `accelerate launch` and had defaults used instead:
        \t`--num_processes` was set to a value of `2`
        Traceback (most recent call last):
        ValueError: environment variable RANK expected, but not set
        subprocess.CalledProcessError: Command '['/opt/python3', '/src/nd.py', '--tp-size', '2', '--num-steps', '40', \
'--sequence-length', '128', '--seed', '7']' returned non-zero exit status 1.
    """
    run = run_of(tmp_path, text)
    assert (run["framework"], run["status"], run["num_gpus"]) == ("other", "crash", 2)
    assert (run["tp"], run["steps_planned"], run["seq_len"]) == (2, 40, 128)


def test_a_bar_counts_batches(tmp_path: Path) -> None:
    bars = "".join(f"\r {n}0%|###  | {n}/10 [00:0{n}<00:05,  1.00it/s, loss=2.5]" for n in range(1, 9))
    assert run_of(tmp_path, bars + "\n")["step_basis"] == "batch"


def test_what_is_shown_beside_the_loss_is_read(tmp_path: Path) -> None:
    drawn = (
        f"\rTraining: {n}%|# | {n}/90 [00:{n:02d}<02:20,  1.0s/it, loss=2.5, lr=3e-4, grad_norm=0.5, tok/s=13.8k]"
        for n in range(1, 40)
    )
    steps = tables_of(tmp_path, "".join(drawn) + "\n")["steps"]
    shown = steps.select("tokens_per_s", "learning_rate", "grad_norm").unique()
    assert shown.rows() == [(13800.0, 3e-4, 0.5)]


def test_a_training_whose_last_bar_is_full_is_completed(tmp_path: Path) -> None:
    first = "".join(bar(n, 4, n) for n in range(1, 5)) + "\n"
    full = run_of(tmp_path, first + "".join(bar(n, 4, n) for n in range(1, 5)) + "\nsaved\n")
    assert (full["status"], full["status_evidence"]) == ("completed", "the progress bar is full: 4/4")
    assert run_of(tmp_path, first + bar(1, 4, 1) + bar(2, 4, 2) + "\n")["status"] != "completed"


def captioned(done: int, total: int, seconds: int, caption: str) -> str:
    return bar(done, total, seconds, loss=None, name=caption).replace(", lr=0.001", "")


@pytest.mark.parametrize("caption", ["Training Progress: ", "Pre-training steps: "])
def test_a_bar_that_names_the_training_has_its_steps_and_its_plan(caption: str, tmp_path: Path) -> None:
    text = "".join(captioned(n, 50, 40 * n, caption) for n in range(8)) + "\n"
    assert rows_of(tmp_path, text) == [(1, None, None), *((n, None, 40.0) for n in range(2, 8))]
    run = run_of(tmp_path, text)
    assert (run["last_step"], run["steps_planned"], run["status"]) == (7, 50, "truncated")


def test_bars_of_epochs_that_name_the_training_go_on_and_plan_nothing(tmp_path: Path) -> None:
    epochs = ("".join(captioned(n, 4, 2 * n, "Iteration: ") for n in range(5)) + "\n" for _ in range(3))
    run = run_of(tmp_path, "".join(epochs))
    assert (run["steps_logged"], run["last_step"], run["status"]) == (12, 12, "completed")
    assert run.get("steps_planned") is None


@pytest.mark.parametrize("caption", ["Evaluating: ", "Loading training data: ", "Tokenizing train split: ", ""])
def test_a_bar_without_a_loss_or_a_caption_counts_anything(caption: str, tmp_path: Path) -> None:
    assert not rows_of(tmp_path, "".join(captioned(n, 50, 9 * n, caption) for n in range(8)) + "\n")


def test_a_captioned_bar_gives_way_to_one_with_a_loss(tmp_path: Path) -> None:
    text = "".join(captioned(n, 40, n, "Training: ") for n in range(6)) + "\n"
    shown = "".join(bar(n, 20, n, loss=3.0 - n / 10) for n in range(1, 9)) + "\n"
    assert [row[:2] for row in rows_of(tmp_path, text + shown)] == [(n, 3.0 - n / 10) for n in range(1, 9)]


def test_a_captioned_bar_that_shows_its_loss_in_other_words_is_read_by_what_it_prints(tmp_path: Path) -> None:
    shown = (
        captioned(n, 500, 40 * n, "Training: ").replace("s/it]", f"s/it, Loss: {9 - n / 10:.3f}]") for n in range(1, 30)
    )
    text = captioned(0, 500, 0, "Training: ") + "".join(shown) + "\n"
    run = run_of(tmp_path, text)
    assert (run["last_step"], run["last_loss"]) == (29, 6.1)
