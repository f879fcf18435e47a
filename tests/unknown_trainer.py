"""Logs of a trainer that nobody knows, with numbers that only their user can name."""

from __future__ import annotations

import math
from pathlib import Path

STEPS = 40


def zephyr_log(*, seconds: float = 0.4, steps: int = STEPS, tp: int = 2) -> str:
    """A log with a step time without a unit, a throughput under a name of its own, and no batch, length or GPUs."""
    lines = ["zephyr trainer 0.3", "model: llama-1b", f"tensor_parallel = {tp}", "micro_batch = 2"]
    for step in range(1, steps + 1):
        loss = 3 + 7 * math.exp(-step / 12) + math.sin(step * step) / 10
        lines.append(
            f"it {step}/{STEPS} | nll {loss:.4f} | took {seconds:.3f} | tput {8192 / seconds:.0f} | q 0.{step}"
        )
    return "\n".join([*lines, "all done" if steps == STEPS else "", ""])


def write_sweep(folder: Path, runs: int = 3) -> list[Path]:
    """Logs of several runs, each in a directory of its own."""
    paths = []
    for number in range(runs):
        path = folder / f"run{number}" / "train.log"
        path.parent.mkdir(parents=True)
        path.write_text(zephyr_log(seconds=0.4 + number / 10), encoding="utf-8")
        paths.append(path)
    return paths
