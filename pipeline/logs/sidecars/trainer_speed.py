"""Batch, step time and throughput from the files that transformers' Trainer keeps of its speed.

Formats: transformers/trainer_callback.py TrainerState.save_to_json (`log_history`: an entry a call of log() with its
step, the last one with the speed), trainer_pt_utils.py save_metrics (`train_results.json`: that last entry alone).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.logs.sidecars.speed_metrics import Speed, is_whole, rounded, tokens_of_step

_State = Mapping[str, Any]

_ROUNDED = {"train_runtime": 4, "train_samples_per_second": 3, "train_steps_per_second": 3, "epoch": 4}
"""Names and decimals, in the order of `Speed`."""


def of_results(results: _State, steps: int | None = None) -> dict[str, str]:
    """`steps_planned` and `arg:total_batch`, as far as the speed tells them; `steps`: those planned, where known."""
    runtime_s, samples_per_s, steps_per_s, epoch = (
        rounded(value, decimals) if (value := _number(results.get(name))) is not None else None
        for name, decimals in _ROUNDED.items()
    )
    speed = Speed(runtime_s, samples_per_s, steps_per_s, epoch, steps)
    found = {"steps_planned": speed.steps_planned(), "arg:total_batch": speed.total_batch()}
    return {name: str(value) for name, value in found.items() if value}


def of_state(state: _State) -> dict[str, str]:
    """What `of_results` finds in the history's end, and of a training kept as a whole its tokens and mean step time."""
    history = [entry for entry in state["log_history"] if isinstance(entry, dict)]
    end = next((entry for entry in reversed(history) if "train_steps_per_second" in entry), {})
    found = of_results(end, state["max_steps"] if state["max_steps"] > 0 else None)
    logged = [entry for entry in history if None not in (_number(entry.get("loss")), _number(entry.get("step")))]
    steps, losses = [int(entry["step"]) for entry in logged], [float(entry["loss"]) for entry in logged]
    if not is_whole(steps, losses, _number(end.get("train_loss"))):
        return found
    tokens = [_number(entry.get("num_input_tokens_seen", entry.get("num_tokens"))) for entry in logged]
    seen = [int(count) for count in tokens if count]
    if len(seen) == len(steps) and (each := tokens_of_step(steps, seen)):
        found["gbs_tokens"] = str(each)
    runtime_s = _number(end.get("train_runtime")) or 0.0
    if runtime_s <= 0 or not state["global_step"] or steps[-1] > state["global_step"]:
        return found
    step_time_s = runtime_s / state["global_step"]
    found |= {"step_time_s": str(round(step_time_s, 6)), "step_time_basis": "whole_run"}
    if len(seen) == len(steps):
        found["tokens_per_s"] = str(round(seen[-1] / steps[-1] / step_time_s, 3))
    return found


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if isinstance(value, float) or abs(value) <= sys.float_info.max else None
