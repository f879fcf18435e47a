"""Steps that transformers' Trainer and LLaMA-Factory keep in files: for runs whose log was not kept.

Formats: transformers trainer_callback.py TrainerState.save_to_json (`trainer_state.json`: `log_history`, an entry a
call of log() with its step), LLaMA-Factory train/callbacks.py LogCallback (`trainer_log.jsonl`, one object a line).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.dialect import History
from sweepscope.pipeline.logs.dialects.huggingface.rates import with_rates
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars import speed_metrics

_STEP = re.compile(r'"step":\s*\d+')
_STATE = {
    "step": "step",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "num_input_tokens_seen": "consumed_tokens",
    "num_tokens": "consumed_tokens",  # TRL's
    "train_runtime": "step_time_s",  # since the beginning
}
_LOG = {
    "current_steps": "step",
    "total_steps": "steps_planned",
    "loss": "loss",
    "lr": "learning_rate",
    "learning_rate": "learning_rate",  # until 2024
    "total_tokens": "consumed_tokens",
    "vram_allocated": "mem_allocated_bytes",  # the peak, in GiB
    "vram_reserved": "mem_reserved_bytes",
}
_MEMORY = ("mem_allocated_bytes", "mem_reserved_bytes")


def read_trainer_state(text: str) -> pl.DataFrame:
    """Entries with a loss. Raises ValueError for other JSON.

    A line is that of the entry's step; in a file of one line, or one that holds further steps, the entry's number.
    """
    state = json.loads(text)
    entries = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("no log_history of transformers' Trainer in it")
    line_numbers = list(_lines_of_steps(text)) if "\n" in text else []
    if len(line_numbers) != len(entries):
        line_numbers = list(range(1, len(entries) + 1))
    trained = [(line_no, entry) for line_no, entry in zip(line_numbers, entries, strict=True) if "loss" in entry]
    facts = _facts(trained, _STATE)
    return _with_rates(facts.with_columns(seconds="step_time_s"), seconds_off=0)


def _lines_of_steps(text: str) -> Iterator[int]:
    line, counted = 1, 0
    for found in _STEP.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        yield line


def read_trainer_log(text: str) -> pl.DataFrame:
    """Lines of the training; one that was cut is unparsed. Raises ValueError where no line is an object with its step.

    The last line has the last step, and no loss.
    """
    entries: list[tuple[int, Mapping[str, Any]]] = []
    for line_no, line in enumerate(text.split("\n"), 1):
        try:
            entry = json.loads(line) if line.strip() else None
        except ValueError:
            entry = {"text": line}
        if isinstance(entry, dict) and not isinstance(entry.get("eval_loss"), int | float):
            entries.append((line_no, entry))
    if not any("current_steps" in entry for _, entry in entries):
        raise ValueError("no current_steps of LLaMA-Factory in it")
    seconds = [_seconds(entry.get("elapsed_time")) for _, entry in entries]
    facts = _facts(entries, _LOG).with_columns(pl.Series("seconds", seconds, dtype=pl.Float64))
    return _with_rates(facts, seconds_off=0.5)


def _seconds(clock: object) -> float | None:
    """Seconds of `0:01:23` and `1 day, 0:01:23`, cut to whole ones."""
    span = speed_metrics.clock(clock) if isinstance(clock, str) else None
    return span.low if span else None


def _with_rates(facts: pl.DataFrame, *, seconds_off: float) -> pl.DataFrame:
    """STEP_FACTS of one file with the rates that follow from `seconds` so far and the tokens."""
    one = {"source": pl.lit(0, pl.Int64), "part": pl.lit(0), "tokens": pl.col("consumed_tokens").cast(pl.Float64)}
    totals = facts.with_columns(**one, seconds_off=pl.lit(seconds_off), tokens_off=pl.lit(0.0))
    return conform(with_rates(totals).drop("source"), STEP_FACTS)


def _facts(entries: Iterable[tuple[int, Mapping[str, Any]]], names: Mapping[str, str]) -> pl.DataFrame:
    rows = [
        {"line_no": line_no, "text": entry.get("text")}
        | {
            column: _value(column, entry[name])
            for name, column in names.items()
            if isinstance(entry.get(name), int | float)
        }
        for line_no, entry in entries
    ]
    schema = {column: STEP_FACTS[column] for column in dict.fromkeys(("line_no", "text", *names.values()))}
    return conform(pl.DataFrame(rows, schema=schema, strict=False), STEP_FACTS)


def _value(column: str, stated: float) -> float:
    return round(stated * 2**30) if column in _MEMORY else stated


HISTORIES = (History("trainer_state.json", read_trainer_state), History("trainer_log.jsonl", read_trainer_log))
