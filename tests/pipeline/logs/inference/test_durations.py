"""Which of the times that a line prints is that of a step, and which of its counters goes on over the epochs."""

from __future__ import annotations

import pytest

from tests.pipeline.ingest_in_memory import tables_of

STEPS = 40
PARTS = "dl=2.9ms h2d=1.7ms fwd=40.9ms bwd=34.2ms"


def log(line: str) -> str:
    """Lines of 40 steps with a loss that falls, in two epochs of 20."""
    return "".join(
        line.format(step=step, loss=2 + 8 / step, epoch=(step - 1) // 20, own=(step - 1) % 20 + 1) + "\n"
        for step in range(1, STEPS + 1)
    )


@pytest.mark.parametrize(
    "times",
    [
        f"{PARTS} opt=107.6ms iter=187.3ms",
        f"iter=187.3ms ({PARTS})",
        f"{PARTS} step: 187.3 ms eta: 20.5min",
        "step_time=187.3ms step_time_min=151.2 step_time_max=420.1 micro_time=93.6ms",
    ],
)
def test_the_time_of_a_step_is_the_whole_of_its_parts(times: str) -> None:
    steps = tables_of({"train.log": log(f"step={{step}} loss={{loss:.4f}} {times}")})["steps"]
    assert steps["step_time_s"].unique().to_list() == [0.1873]


def test_a_part_under_the_name_of_the_counter_is_no_time_of_a_step() -> None:
    steps = tables_of({"train.log": log("step={step} loss={loss:.4f} fwd=140.9ms bwd=234.2ms h2d=1.7ms")})["steps"]
    assert steps["step_time_s"].null_count() == STEPS


def test_a_cell_with_the_time_of_an_iteration_is_that_of_a_step() -> None:
    rows = log("{step},{loss:.4f},40.5,12.25,107.5,187.5")
    steps = tables_of(
        {"train_log.csv": "global_step,loss,fwd_ms,optimizer_step_ms,backward_ms,total_iter_ms\n" + rows}
    )["steps"]
    assert steps["step_time_s"].unique().to_list() == [0.1875]


def test_minutes_are_still_minutes() -> None:
    (run,) = tables_of({"train.log": log("step={step} loss={loss:.4f} step_time_s=0.5 elapsed_min=3.5")})[
        "runs"
    ].to_dicts()
    assert run["step_time_s"] == 0.5


def test_the_time_behind_a_validation_loss_is_that_of_the_training() -> None:
    steps = tables_of({"train.log": log("epoch {step} train_loss={loss:.4f} val_loss=2.5 step_time=1.25s")})["steps"]
    assert steps["step_time_s"].unique().to_list() == [1.25]


def test_a_counter_that_goes_on_is_taken_before_one_of_each_epoch() -> None:
    head = "Plan: epochs=2, steps/epoch=20, total_steps_planned=40\n"
    text = head + log("[Epoch {epoch:03d}][Step {own:04d}/20] global_step={step} train_loss={loss:.4f}")
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["steps_logged"], run["last_step"], run["steps_planned"]) == (STEPS, STEPS, 40)


def test_the_time_since_the_line_before_is_that_of_several_steps_by_the_printed_rate() -> None:
    text = "INFO:tensorflow:loss = 7.0, step = 0\n"
    for step in range(100, 2_001, 100):
        text += f"INFO:tensorflow:global_step/sec: {100 / 144:.6f}\n"
        text += f"INFO:tensorflow:loss = {7 - step / 500:.4f}, step = {step} (144.000 sec)\n"
    steps = tables_of({"train.log": text})["steps"].sort("step")
    assert steps["step_time_s"].to_list() == [None, *[1.44] * 20]


def test_the_time_since_the_line_before_is_that_of_several_steps_by_the_clock() -> None:
    rows = (
        f"2026-03-04 10:{at // 2:02}:{at % 2 * 30:02} step {10 * at} loss {7 - at / 20:.4f} time 30.0s\n"
        for at in range(40)
    )
    steps = tables_of({"train.log": "".join(rows)})["steps"].sort("step")
    assert steps["step_time_s"].to_list() == [None, *[3.0] * 39]
