"""A trainer's own counter beside that of DeepSpeed's engine, one apart: both lines tell of one step."""

from __future__ import annotations

import math

from tests.pipeline.ingest_in_memory import tables_of

STEPS = 13


def two_counters(first: int) -> str:
    lines = ["[2025-08-15 08:40:46,813] [INFO] [launch.py:146:main] WORLD INFO DICT: {'localhost': [0, 1]}"]
    for done in range(1, STEPS + 1):
        stamp = f"[2025-08-15 08:42:{done:02d},564]"
        lines.append(f"{stamp} [INFO] [logging.py:107:log_dist] [Rank 0] step={done}, skipped=0, lr=[1e-05], mom=[0.9]")
        loss = 2 + 4 * math.exp(-done / 9)
        lines.append(f"[Step {done - 1 + first}/100] Loss: {loss:.4f} | Tokens/s: 137.19 | GPU Mem (GB): 26.79")
    return "\n".join([*lines, ""])


def test_losses_of_a_counter_one_apart_belong_to_the_steps_of_the_engine() -> None:
    for first in (0, 1, 2):
        (run,) = tables_of({"train.log": two_counters(first)})["runs"].to_dicts()
        assert (run["last_step"], run["steps_logged"], run["steps_planned"]) == (STEPS, STEPS, 100)
        assert run["last_loss"] == round(2 + 4 * math.exp(-STEPS / 9), 4)


def test_losses_of_another_counter_are_left_alone() -> None:
    (run,) = tables_of({"train.log": two_counters(7)})["runs"].to_dicts()
    assert run["last_loss"] is None
