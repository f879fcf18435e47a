"""A run as a tracker keeps it, and its steps: which of its scalars are columns of `steps`, and in what unit.

Names are the user's own, so they are read as those in logs of unknown trainers are: by `synonyms`, where these are
sure, and by the names that known trainers give. A unit that no name states is decided by the clock or by size; a value
whose unit stays unknown is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.logs import synonyms
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars.wandb_files import settings_of_values

LAST_SECOND = 1e11
"""Since 1970, of the year 5138: more are milliseconds."""


@dataclass(frozen=True)
class Row:
    """The scalars of one call of the tracker: `number` counts them from 1, `step` is the tracker's own count.

    `seconds` is its time since 1970, None where it has none.
    """

    number: int
    step: int | None
    seconds: float | None
    scalars: Mapping[str, float]


@dataclass(frozen=True)
class TrackedRun:
    """Rows in the order of the file, settings by column of `runs` (text), and the configuration as it was kept.

    Attributes:
        rows: what was logged.
        config: the configuration.
        settings: what of it are columns of `runs`.
        ended: how it ended, as a trainer's status file has it; "" where it goes on, was killed, or nothing says it.
        name: the name of one of several runs of a file.
        number: its number among them, from 1 on; it stays the same while runs are added.
    """

    rows: Sequence[Row]
    config: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    ended: str = ""
    name: str = ""
    number: int = 1

    @property
    def all_settings(self) -> dict[str, str]:
        """The settings, and how it ended."""
        return {**self.settings, **({"status_file": self.ended} if self.ended else {})}


_NAMES: Mapping[str, str] = {
    # torchtitan components/metrics.py
    "loss_metrics/global_avg_loss": "loss",
    "throughput(tps)": "tokens_per_s_per_gpu",
    "time_metrics/end_to_end(s)": "step_time",
    "memory/max_reserved(GiB)": "mem_reserved",
    "memory/max_active(GiB)": "mem_allocated",
    "tflops": "tflops_per_gpu",
    # huggingface/nanotron trainer.py train_step_logs
    "lm_loss": "loss",
    "elapsed_time_per_iteration_ms": "step_time",
    "model_tflops_per_gpu": "tflops_per_gpu",
    # Megatron-LM training.py training_log, for TensorBoard
    "iteration-time": "step_time",
    "lm loss": "loss",
}
_STEPS = ("iteration_step", "train/global_step", "trainer/global_step", "train/step", "global_step")
"""Names of the trainer's own count (nanotron, transformers, Lightning), surest first; a tracker counts its calls."""
_WANTED = ("loss", "learning_rate", "grad_norm", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "step_time")
_MORE = ("tflops_per_gpu", "mem_reserved", "mem_allocated", "consumed_tokens")
_COLUMNS = {
    **{name: name for name in ("loss", "learning_rate", "grad_norm", "tokens_per_s", "tokens_per_s_per_gpu")},
    "step_time": "step_time_s",
    "mfu": "mfu_logged",
    "tflops_per_gpu": "tflops_per_gpu_logged",
    "mem_reserved": "mem_reserved_bytes",
    "mem_allocated": "mem_allocated_bytes",
    "consumed_tokens": "consumed_tokens",
}
_OF_STEPS = frozenset({"loss", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu"})
"""Columns of which a training's steps have one at least."""
_AMBIGUOUS = frozenset({"throughput", "flops"})
"""Words under which trainers keep one quantity or another: Megatron's `throughput` are TFLOP/s."""
_UNIT = re.compile(r" (?:s|secs?|seconds|ms|milliseconds|gi?b|mi?b|bytes)$")
"""A unit behind a name: `step_time_s`."""
_BYTES = {"gib": 2**30, "mib": 2**20, "gb": 10**9, "mb": 10**6, "bytes": 1}
_LEAST_BYTES = 2**20
_ALIKE = 1.6
"""A stated step time is in the unit in which it differs from the clock's by less than this factor."""


def numbers(prefix: str, items: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers by name; those of nested dictionaries with the names above, as W&B shows them."""
    for name, value in items.items():
        if isinstance(value, dict):
            if "_type" not in value:  # a histogram, a table or an image
                yield from numbers(f"{prefix}{name}.", value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", value


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Settings, by column of `runs`, of a configuration under the user's own names."""
    return dict(settings_of_values(config))


def is_wanted(name: str) -> bool:
    """Whether a scalar of that name may be a column of `steps`, or counts them."""
    return name in _STEPS or bool(_meant(name))


def is_of_steps(name: str) -> bool:
    """Whether a scalar of that name alone makes a training: its loss, or the rate or time of its steps."""
    return not _OF_STEPS.isdisjoint(_meant(name))


def is_training_loss(name: str) -> bool:
    """Whether a scalar of that name is a training's loss.

    >>> is_training_loss("train/loss"), is_training_loss("eval/loss"), is_training_loss("lr")
    (True, False, False)
    """
    return "loss" in _meant(name)


def steps(run: TrackedRun) -> pl.DataFrame:
    """STEP_FACTS rows without `source`, one per step, `line_no` the number of its first row.

    Raises ValueError where no scalar of a training is among them.
    """
    named = _columns(run.rows)
    if not named:
        raise ValueError("no loss, rate or time of a training's steps in it")
    counter = next((name for name in _STEPS if any(name in row.scalars for row in run.rows)), None)
    found: dict[int, dict[str, object]] = {}
    for row in run.rows:
        step = row.scalars.get(counter, math.nan) if counter else row.step
        values = {column: row.scalars[name] for name, column in named.items() if name in row.scalars}
        if not values or step is None or not math.isfinite(step) or not 0 <= step < 2**53:
            continue
        kept = found.setdefault(int(step), {"line_no": row.number, "step": int(step), "ts": _moment(row.seconds)})
        for column, value in values.items():
            kept.setdefault(column, value)
    if not found:
        raise ValueError("no steps of a training in it")
    frame = pl.DataFrame(list(found.values()), infer_schema_length=None, strict=False)
    return conform(_in_base_units(frame.sort("line_no"), named), STEP_FACTS)


def _columns(rows: Iterable[Row]) -> dict[str, str]:
    """The scalar for each column of STEP_FACTS, by its name: the surest, and of equals the one that is kept most."""
    counts: dict[str, int] = {}
    for row in rows:
        for name in row.scalars:
            counts[name] = counts.get(name, 0) + 1
    ranked = sorted((_doubt(name, column), -counts[name], name, column) for name in counts for column in _meant(name))
    chosen: dict[str, str] = {}
    for _, _, name, column in ranked:
        if column not in chosen.values() and name not in chosen:
            chosen[name] = column
    return chosen if _OF_STEPS & {*chosen.values()} else {}


def _meant(name: str) -> list[str]:
    """Columns of STEP_FACTS that a scalar may be."""
    if name in _NAMES:
        return [_COLUMNS[_NAMES[name]]]
    plain = synonyms.words(name)
    if synonyms.EVALUATION.search(plain) or plain in _AMBIGUOUS or plain.startswith("system "):
        return []
    own = plain.removeprefix("train ").removeprefix("training ")
    section, _, rest = own.partition(" ")
    own = rest if "/" in name and rest and synonyms.NAMESPACE.fullmatch(section) else own
    forms = {plain, own, _UNIT.sub("", own)} - _AMBIGUOUS
    sure = [column for form in forms for column, doubt in synonyms.step_columns(form) if doubt == 0]
    return [_COLUMNS[column] for column in dict.fromkeys(sure) if column in (*_WANTED, *_MORE)]


def _doubt(name: str, column: str) -> int:
    is_named = name in _NAMES and _COLUMNS[_NAMES[name]] == column
    return 0 if is_named else 1 + (not synonyms.TRAINING.search(synonyms.words(name)))


def _in_base_units(frame: pl.DataFrame, named: Mapping[str, str]) -> pl.DataFrame:
    """Times in seconds, memory in bytes, MFU as a share; columns whose unit is unknown left out."""
    factors = {}
    for name, column in named.items():
        if column not in frame.columns:
            continue
        values = frame[column].cast(pl.Float64, strict=False)
        middle = values.median()
        typical = float(middle) if isinstance(middle, int | float) else math.nan
        if column == "step_time_s":
            factors[column] = _time_factor(name, typical, frame)
        elif column in ("mem_reserved_bytes", "mem_allocated_bytes"):
            factors[column] = _byte_factor(name, typical)
        elif column == "mfu_logged":
            factors[column] = 0.01 if "%" in name or typical > 1.5 else 1.0
        else:
            factors[column] = 1.0
    known = frame.drop(column for column, factor in factors.items() if factor is None)
    return known.with_columns(
        _scaled(column, factor) for column, factor in factors.items() if factor is not None and factor != 1.0
    )


def _scaled(column: str, factor: float) -> pl.Expr:
    value = pl.col(column).cast(pl.Float64, strict=False) * factor
    return value.round(0) if column.endswith("_bytes") else value.round(9)


def _time_factor(name: str, typical: float, frame: pl.DataFrame) -> float | None:
    """Seconds per unit of a step time: as its name says, else as the clock does; None where neither does."""
    words = synonyms.words(name).split()
    if "ms" in words or "milliseconds" in words:
        return 1e-3
    if {"s", "sec", "secs", "seconds"} & {*words}:
        return 1.0
    known = frame.cast({"ts": pl.Datetime("us")}).drop_nulls("ts").filter(pl.col("step").diff().fill_null(1) > 0)
    between = (known["ts"].diff().dt.total_microseconds() / 1e6 / known["step"].diff()).median()
    if not isinstance(between, int | float) or not between > 0 or not typical > 0:
        return None
    return next((factor for factor in (1.0, 1e-3) if 1 / _ALIKE < typical * factor / between < _ALIKE), None)


def _byte_factor(name: str, typical: float) -> float | None:
    """Bytes per unit of an amount of memory: as its name says, else 1 where only bytes are that many."""
    words = re.findall("[a-z]+", name.lower())
    by_name = next((factor for word, factor in _BYTES.items() if word in words), None)
    return by_name or (1.0 if typical >= _LEAST_BYTES else None)


def _moment(seconds: float | None) -> datetime | None:
    """A time since 1970 in UTC, without a zone; None where there is none that a calendar has."""
    if seconds is None or not 0 < seconds < 2**33:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
