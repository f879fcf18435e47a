"""Lightning's bars as rich draws them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, step_of, tables_of

BAR = "Epoch {epoch} ━━━━━━━━━━━━━━━━━━━━ {done} 0:00:22 • 0:00:00 4.44it/s {values}"


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
    step = step_of("lightning", BAR.format(epoch="1/9 ", done="40/98", values=values))
    assert step["step"] == 98 + 40 - 1
    assert step["loss"] == loss or (loss is None and step["loss"] != step["loss"])


@pytest.mark.parametrize("values", ["v_num: 0 val/loss: 1.5", "v_num: 0 train/loss: ", "v_num: 0"])
def test_a_bar_without_a_loss_says_nothing(values: str) -> None:
    assert facts_of("lightning", BAR.format(epoch="0/9", done="1/98", values=values)).steps.is_empty()


@pytest.mark.parametrize(("epoch", "step"), [("0/-2", 71), ("1/-2", None)])
def test_batches_without_a_total(epoch: str, step: int | None) -> None:
    steps = facts_of("lightning", BAR.format(epoch=epoch, done="72/--", values="v_num: 0 train_loss: 2.5")).steps
    assert steps["step"].to_list() == ([step] if step else [])


def test_a_run_drawn_once_per_epoch_and_again_after_its_validation(tmp_path: Path) -> None:
    bars = [
        BAR.format(epoch=f"{epoch}/1", done="98/98", values=f"v_num: 0 train/loss: {loss}  ")
        for epoch, loss in ((0, 1.5), (0, 1.5), (1, 1.25))
    ]
    tables = tables_of(tmp_path, "\n".join(["GPU available: True (cuda), used: True", *bars]) + "\n")
    assert tables["runs"]["framework"].to_list() == ["lightning"]
    assert tables["steps"].select("step", "loss").rows() == [(97, 1.5), (195, 1.25)]
