"""Names that a dialect file may use: columns of the store, with or without their unit's suffix, and what each may hold.

A step line gives columns of `steps`, any other line and file columns of `runs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from sweepscope.pipeline.logs.declared.units import KINDS, Printed, strftime
from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.schemas.columns.shared import HARDWARE, LAYOUT, MODEL, SOFTWARE
from sweepscope.schemas.registry import COLUMNS

EPOCH_STEP = "epoch_step"
EPOCH_COLUMNS = ("epoch", "epochs", EPOCH_STEP, "epoch_steps")
"""Of steps counted within their epoch: its number, how many there are, the step in it, and how many it has."""

STEP_TOKENS = "step_tokens"
"""Of all accelerators together, in one step: with its time or the rate, the third of them follows."""

STEP_COLUMNS = (
    *(name for name in STEP_FACTS.names() if name not in ("source", "line_no", "text", "step_basis")),
    *EPOCH_COLUMNS,
    STEP_TOKENS,
)
PEAKS = ("mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
"""Of these the run keeps the largest value that any line gives."""

SHARDS = "dp_shard"
"""Ranks that share one copy of the states: times `dp_replicate`, they are dp."""

RUN_COLUMNS = (
    *HARDWARE,
    *MODEL,
    SHARDS,
    *(name for name in LAYOUT if name != "layout"),
    *(name for name in SOFTWARE if name not in ("parser", "parser_version")),
    "steps_planned",
    "peak_tflops_logged",
    "job_id",
    *PEAKS,
)
EVENT_COLUMNS = ("ts", "rank", "host")

_QUANTITY = {"s": "time", "bytes": "bytes", "fraction": "share", "TFLOP/s/GPU": "flops", "TFLOP/s": "flops"}
_USUAL = {"time": "duration", "bytes": "size", "flops": "TFLOPs", "instant": "iso", "share": "%"}
_AMBIGUOUS = ("time", "bytes", "share")


@dataclass(frozen=True)
class Target:
    """A column and the way its value is printed."""

    column: str
    printed: Printed
    dtype: pl.DataType


def canonical(name: str, allowed: Iterable[str]) -> str | None:
    """The column that `name` means: itself, or with a unit's suffix left out (`step_time`: `step_time_s`)."""
    known = tuple(allowed)
    return next((column for column in (name, f"{name}_s", f"{name}_bytes", f"{name}_logged") if column in known), None)


def suggestion(word: str, words: Iterable[str]) -> str:
    """Did you mean ...?, as the end of a sentence; the choices when nothing is near."""
    known = sorted(set(words))
    near = get_close_matches(word.lower(), known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(known)}."


def target(name: str, word: str | None, allowed: tuple[str, ...]) -> Target:
    """Column `name`, printed as `word` says, or as is usual for it.

    Raises ValueError for a column or a word that is not known, and for a word of another quantity.
    """
    column = canonical(name, allowed)
    if column is None:
        if elsewhere := canonical(name, RUN_COLUMNS if "step" in allowed else STEP_COLUMNS):
            table = "a [[setting]]" if elsewhere in RUN_COLUMNS else "a [[step]]"
            raise ValueError(f"{name} belongs into {table}: here it is not a column. {suggestion(name, allowed)}")
        raise ValueError(f"{name} is no column here. {suggestion(name, allowed)} ({{_}} matches any one word)")
    wanted, dtype = _wanted(column)
    fitting = [kind.word for kind in KINDS.values() if _fits(kind, wanted)]
    if word is None:
        return Target(column, KINDS[_usual(wanted, dtype)], dtype)
    if word.startswith("%") and wanted == "instant":
        return Target(column, strftime(word), dtype)
    if word not in KINDS:
        raise ValueError(f"{word} is not a way to print {name}. {suggestion(word, fitting)}")
    kind = KINDS[word]
    if not _fits(kind, wanted):
        why = "the unit has to be named" if wanted in _AMBIGUOUS else f"{word} is another quantity"
        raise ValueError(f"{name} cannot be printed as {word}: {why}. Use one of: {', '.join(fitting)}.")
    return Target(column, kind, dtype)


def _wanted(column: str) -> tuple[str, pl.DataType]:
    if column in (*EPOCH_COLUMNS, STEP_TOKENS, SHARDS):
        return "number", pl.Int64()
    known = COLUMNS[column]
    dtype = known.dtype if isinstance(known.dtype, pl.DataType) else known.dtype()
    if dtype == pl.Datetime("us"):
        return "instant", dtype
    if dtype in (pl.String, pl.Boolean):
        return "text", dtype
    return _QUANTITY.get(known.unit or "", "number"), dtype


def _usual(wanted: str, dtype: pl.DataType) -> str:
    if wanted == "text":
        return "word"
    return _USUAL.get(wanted, "int" if dtype == pl.Int64 else "float")


def _fits(kind: Printed, wanted: str) -> bool:
    return kind.quantity == wanted or (wanted == "flops" and kind.word in ("float", "human"))
