"""Lightning's bars as tqdm and rich draw them: steps, times, batches of a step, and what its settings say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import facts_of, run_of, settings_of, tables_of

GPU = "GPU available: True (cuda), used: True\n"
BAR = "Epoch {epoch} ━━━━━━━━━━━━━━━━━━━━ {done} 0:00:22 • 0:00:00 4.44it/s {values}"


def steps_of(*rows: str) -> list[dict[str, Any]]:
    """Steps of a file with these lines."""
    block = lines.split(0, (GPU + "\n".join(rows) + "\n").encode())
    return extract.extract(block, DIALECTS).facts.steps.rows(named=True)


def tqdm(epoch: int, done: int, total: int, *, loss: float = 2.5, rate: str = "2.00it/s") -> str:
    return f"Epoch {epoch}:  50%|#####     | {done}/{total} [00:05<00:05,  {rate}, v_num=0, train_loss={loss:.3f}]"


def stopped(what: str) -> str:
    return f"`Trainer.fit` stopped: `{what}` reached."


@pytest.mark.parametrize("redraw", [tqdm(0, 2, 9, loss=2.25, rate="1.10it/s"), ""])
def test_a_bar_that_is_closed_behind_a_traceback_tells_of_no_progress(tmp_path: Path, redraw: str) -> None:
    drawn = [tqdm(0, 1, 9, loss=2.5), tqdm(0, 2, 9, loss=2.5), tqdm(0, 2, 9, loss=2.25)]
    failure = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nValueError: 3 rows\n\n'
    run = run_of(tmp_path, GPU + "\r".join(drawn) + failure + "\r" + redraw + "\n")
    assert (run["status"], run["status_evidence"]) == ("crash", "ValueError: 3 rows")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ("v_num: 0.000 train/loss: 1.559          ", 1.559),
        ("v_num: k3xp train_loss_step: 2.1 train_acc: 0.5", 2.1),
        ("v_num: 3 train/loss_step: 1.3282026-01-02 03:04:05 | INFO | saved", 1.328),
        ("loss: 0.398 ", 0.398),
        ("v_num: 0 train_loss: nan", None),
    ],
)
def test_the_loss_of_a_bar(values: str, loss: float | None) -> None:
    (step,) = steps_of(BAR.format(epoch="1/9 ", done="40/98", values=values))
    assert (step["step"], step["step_basis"]) == (98 + 40 - 1, "batch")
    assert step["loss"] == loss or (loss is None and step["loss"] != step["loss"])


@pytest.mark.parametrize("values", ["v_num: 0 val/loss: 1.5", "v_num: 0 train/loss: ", "v_num: 0"])
def test_a_bar_without_a_loss_says_nothing(values: str) -> None:
    assert not steps_of(BAR.format(epoch="0/9", done="1/98", values=values))


@pytest.mark.parametrize(("epoch", "step"), [("0/-2", 71), ("1/-2", None)])
def test_batches_without_a_total(epoch: str, step: int | None) -> None:
    found = steps_of(BAR.format(epoch=epoch, done="72/--", values="v_num: 0 train_loss: 2.5"))
    assert [row["step"] for row in found] == ([step] if step else [])


WRAPPED = [
    # as rich wraps it at 80 columns
    "Epoch 0/-2 ━━━━━━━━━━━━━━━━━ 20/20 0:00:02 • 0:00:00 10.35it/s v_num: 0.000     \n"
    "                                                               train_loss: 6.573",
    # a name apart from its value, and further values
    "Epoch 0/-2  ━━━━━━━━━━━━━ 20/20 0:00:02 • 0:00:00 10.35it/s v_num: 0.000 lr:    \n"
    "                                                            0.001 train_loss:   \n"
    "                                                            6.573 accuracy: 0.25",
    # times, too, when there are many values
    "Epoch 0/-2  ━━━━━━━━━━━━━ 20/20 0:00:02 •     10.35it/s v_num: 0.000 grad: 1.000\n"
    "                                0:00:00                 train_loss: 6.573       ",
]


@pytest.mark.parametrize("bar", WRAPPED)
def test_a_bar_that_goes_on_below_its_line(bar: str) -> None:
    (step,) = steps_of(bar, "another line", "    train_loss: 9.999")
    assert (step["step"], step["loss"], step["line_no"]) == (19, 6.573, 2)
    assert step["step_time_s"] == pytest.approx(1 / 10.35)


def test_what_is_below_no_bar_is_no_step(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, GPU + tqdm(0, 5, 10) + "\n" + " " * 60 + "train_loss: 6.573\n")
    assert (tables["steps"].height, tables["rejects"].height) == (1, 0)


def test_it_does_not_matter_where_a_wrapped_bar_is_cut() -> None:
    rows = (GPU + WRAPPED[1] + "\n").splitlines(keepends=True)
    for cut in range(1, len(rows)):
        parts = [("".join(rows[:cut]), 1), ("".join(rows[cut:]), cut + 1)]
        blocks = [lines.split(0, part.encode(), first) for part, first in parts]
        merged = extract.merge([extract.extract(block, DIALECTS, partial=[0]) for block in blocks], DIALECTS)
        assert merged.facts.steps.select("step", "loss").rows() == [(19, 6.573)]


@pytest.mark.parametrize(
    ("bars", "steps", "gas"),
    [
        ([tqdm(0, 10, 20), tqdm(0, 20, 20)], [9, 19], 1),
        ([BAR.format(epoch="0/-2", done="40/20", values="train_loss: 2.5")], [19], 2),
        ([tqdm(0, 20, 20), tqdm(1, 20, 20)], [9, 19], 2),
        ([tqdm(0, 9, 9), tqdm(1, 9, 9), tqdm(2, 9, 9), tqdm(3, 9, 9)], [4, 9, 14, 19], 2),  # the last of nine alone
        ([tqdm(0, 15, 15), tqdm(1, 5, 5)], [14, 19], 1),  # the last epoch shows what is left
    ],
)
def test_where_it_stops_tells_the_batches_of_a_step(
    tmp_path: Path, bars: list[str], steps: list[int], gas: int
) -> None:
    tables = tables_of(tmp_path, GPU + "\n".join([*bars, stopped("max_steps=20")]) + "\n")
    run = tables["runs"].row(0, named=True)
    assert tables["steps"].sort("step")["step"].to_list() == steps
    assert (run["gas"], run["steps_planned"], run["step_basis"], run["status"]) == (gas, 20, "step", "completed")


def test_an_epoch_that_goes_beyond_the_steps_that_are_left(tmp_path: Path) -> None:
    """As Lightning 2.6 draws two batches a step, 25 an epoch, with 8 steps left for the third."""
    metric = "[00:00<00:00, 99.00it/s, v_num=0, train_loss=2.500]"
    bars = [
        *(f"Epoch {epoch}: 100%|##########| 25/25 {metric}" for epoch in (0, 1)),
        f"Epoch 1:   0%|          | 0/25 {metric}",
        f"Epoch 2:   0%|          | 0/8 {metric}",
        f"Epoch 2:  50%|#####     | 4/8 {metric}",
        f"Epoch 2: |          | 16/? {metric}",
    ]
    tables = tables_of(tmp_path, GPU + "\r".join(bars) + stopped("max_steps=34") + "\n")
    assert tables["steps"].sort("step")["step"].to_list() == [12, 25, 27, 33]
    assert tables["runs"].select("gas", "status", "step_basis").rows() == [(2, "completed", "step")]


@pytest.mark.parametrize(("end", "steps"), [(stopped("max_steps=70"), [69]), ("", [])])
def test_a_later_epoch_alone_has_its_place_by_the_stop_only(end: str, steps: list[int]) -> None:
    bar = BAR.format(epoch="5/-2", done="10/5", values="v_num: 0.000 train_loss: 2.863")
    assert [row["step"] for row in steps_of(end, bar)] == steps


def test_a_stop_at_epochs_tells_no_batches_of_a_step(tmp_path: Path) -> None:
    run = run_of(tmp_path, GPU + "\n".join([tqdm(0, 20, 20), stopped("max_epochs=1")]) + "\n")
    assert (run["step_basis"], run["last_step"], run["status"]) == ("batch", 19, "completed")
    assert "gas" not in run


def test_the_plan_of_a_bar_without_a_last_epoch_is_a_guess(tmp_path: Path) -> None:
    run = run_of(tmp_path, GPU + BAR.format(epoch="0/-2", done="11/20", values="train_loss: 2.5") + "\n")
    assert (run["steps_planned"], run["last_step"], run["status"]) == (20, 10, "truncated")


def test_the_rate_of_tqdms_bar_is_the_mean_of_its_epoch(tmp_path: Path) -> None:
    bars = [tqdm(0, done, 40, rate=rate) for done, rate in ((10, "1.00it/s"), (20, "1.33it/s"), (40, "1.60it/s"))]
    found = steps_of(*bars)
    # 10 s, 15 s and 25 s: half a second for each of the last thirty
    assert [row["step_time_s"] for row in found] == [None, pytest.approx(0.5, rel=0.04), pytest.approx(0.5, rel=0.04)]


def test_a_single_bar_tells_the_mean(tmp_path: Path) -> None:
    run = run_of(tmp_path, GPU + "\n".join([tqdm(0, 20, 20, rate="2.50s/it"), stopped("max_steps=20")]) + "\n")
    assert (run["step_time_s"], run["step_time_basis"]) == (2.5, "whole_run")


def test_a_run_drawn_once_per_epoch_and_again_after_its_validation(tmp_path: Path) -> None:
    bars = [
        BAR.format(epoch=f"{epoch}/1", done="98/98", values=f"v_num: 0 train/loss: {loss}  ")
        for epoch, loss in ((0, 1.5), (0, 1.5), (1, 1.25))
    ]
    tables = tables_of(tmp_path, "\n".join(["GPU available: True (cuda), used: True", *bars]) + "\n")
    assert tables["runs"]["framework"].to_list() == ["lightning"]
    assert tables["steps"].select("step", "loss").rows() == [(97, 1.5), (195, 1.25)]


@pytest.mark.parametrize(
    ("size", "params"),
    [
        ("Total params: 556 K\nTotal estimated model params size (MB): 2.228", 557_000),
        ("1.3 M     Total params\n2.548     Total estimated model params size (MB)", 1_274_000),  # of 16 bits
        ("1.3 M     Total params\n9.9       Total estimated model params size (MB)", 1_300_000),
        ("Total params: 7.2 B\nTotal estimated model params size (MB): 28,950.5", 7_237_625_000),
    ],
)
def test_the_size_of_the_model(tmp_path: Path, size: str, params: int) -> None:
    run = run_of(tmp_path, GPU + size + "\n" + tqdm(0, 5, 10) + "\n")
    assert (run["params"], run["num_gpus"]) == (params, 1)


@pytest.mark.parametrize(
    ("head", "gpus", "accelerator"),
    [
        ("GPU available: False, used: False\nTPU available: False, using: 0 TPU cores\n", 1, "CPU"),
        ("GPU available: False, used: False\nTPU available: True, using: 8 TPU cores\n", None, None),
        (GPU + "All distributed processes registered. Starting with 2 processes\n", 2, None),
    ],
)
def test_processes(tmp_path: Path, head: str, gpus: int | None, accelerator: str | None) -> None:
    size = "Total estimated model params size (MB): 2.228\n"
    run = run_of(tmp_path, head + size + tqdm(0, 5, 10) + "\n")
    assert (run.get("num_gpus"), run.get("dp"), run.get("accelerator")) == (gpus, gpus, accelerator)


def test_a_model_that_was_never_shown_may_be_one_of_many_processes() -> None:
    assert "num_gpus" not in settings_of("lightning", GPU)
    assert facts_of("lightning", GPU).steps.is_empty()


def test_a_bar_that_is_drawn_full_before_it_is_reset_begins_no_training(tmp_path: Path) -> None:
    """Lightning 1.7 writes the number of the next epoch into the bar of the last one."""
    drawn = [GPU.strip()]
    for epoch in range(3):
        stale = [tqdm(epoch, 90, 90, loss=3 - epoch)] if epoch else []
        drawn += [*stale, *(tqdm(epoch, done, 90, loss=2.5 - epoch / 2 - done / 900) for done in (30, 60, 90))]
    run = run_of(tmp_path, "\r".join(drawn) + "\n")
    assert (run["steps_logged"], run["first_step"], run["last_step"]) == (9, 29, 269)


def test_epochs_of_one_batch_are_all_there(tmp_path: Path) -> None:
    run = run_of(tmp_path, GPU + "".join(f"{tqdm(epoch, 1, 1, loss=3 - epoch / 4)}\n" for epoch in range(5)))
    assert (run["steps_logged"], run["last_step"]) == (5, 4)
