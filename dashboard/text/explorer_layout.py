"""Sentences of Explorer & advisor on one layout: whether it fits, its figures and breakdowns, and runs like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import (
    ABOUT,
    GIB,
    NBSP,
    between,
    count,
    gib,
    number,
    percent,
    seconds,
    token_count,
)
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.allowed import allowed
from sweepscope.dashboard.view_models.estimator import times
from sweepscope.dashboard.view_models.explorer import likely_mfu
from sweepscope.dashboard.view_models.explorer_layout import Answer, Part
from sweepscope.pipeline.estimate.search.search import EXPECTATION, Found
from sweepscope.schemas.thresholds import MEM_NEAR_LIMIT

_LEVEL = 5e-4  # a difference that prints as 0.0 %
KNOB = {
    "tp": "Tensor parallel (TP)",
    "pp": "Pipeline (PP)",
    "cp": "Context (CP)",
    "ep": "Expert (EP)",
    "pipeline_schedule": "Pipeline schedule",
    "vpp": "Chunks per stage (VPP)",
    "mbs": "Micro-batch (MBS)",
    "zero_stage": "ZeRO stage",
    "dp_replicate": "Copies of what ZeRO shards (HSDP)",
    "recompute": "Recompute",
}
_SHORT = {name: name.upper() for name in ("dp", "tp", "pp", "cp", "ep", "vpp", "mbs", "gas")} | {"zero_stage": "ZeRO-"}
"""How layouts spell a setting, before its value."""


def verdict(estimate: Answer) -> tuple[str, str]:
    """Symbol and words on whether the layout fits, with its room or its excess."""
    left = estimate.card_bytes - estimate.need_bytes
    if not estimate.fits:
        return "✕", f"**Does not fit**: {ABOUT}{gib(-left)} too much"
    near = " · near limit" if estimate.need_bytes > MEM_NEAR_LIMIT * estimate.card_bytes else ""
    return "✓", f"**Fits**, {ABOUT}{gib(left)} to spare{near}"


def mfu_of(estimate: Answer, ranked_by: str) -> float:
    """MFU of a layout by what layouts are ranked by."""
    return estimate.likely_mfu if ranked_by == EXPECTATION else estimate.mfu


def big_number(estimate: Answer, ranked_by: str) -> tuple[str, str]:
    """MFU of a layout that fits; of one that does not, the memory that it needs."""
    if estimate.fits:
        interval = f", {between(estimate.interval)} likely" if estimate.interval else ""
        return f"{ABOUT}{percent(mfu_of(estimate, ranked_by))}", f"MFU{interval}"
    return f"{ABOUT}{gib(estimate.need_bytes, 0)}", f"per GPU, the card has {gib(estimate.card_bytes)}"


def facts(estimate: Answer, found: Found, reached: float | None = None) -> list[tuple[str, str]]:
    """What the panel lists of the chosen layout. `reached` is the throughput of its fastest run over the estimated."""
    slow = estimate.penalty or 1.0
    slowdown = f"{ABOUT}{times(estimate.penalty)}" if estimate.penalty else _no_penalty(found)
    name, doubt = allowed(reached)
    allows = f"{ABOUT}{percent(estimate.mfu)} MFU{f', {doubt}' if doubt else ''}"
    rows = [(name, allows), ("Typical slowdown", slowdown)]
    step = f"{ABOUT}{seconds(slow * estimate.step_time_s)}"
    rows.append(("Step, throughput", f"{step}, {ABOUT}{number(estimate.tokens_per_s_per_gpu / slow)} tokens/s/GPU"))
    if estimate.fits and found.fitting:
        rank = found.rank(estimate.tokens_per_s_per_gpu)
        rows.append(("Rank by the hardware", f"{number(rank)} of {number(found.fitting)} that fit with room"))
        speed = mfu_of(estimate, found.ranked_by) / likely_mfu(found.layouts, found.ranked_by)[0]
        rows.append(("Against the fastest", _against(speed)))
    return rows


def _against(speed: float) -> str:
    """A share of the fastest layout's speed in words: "4.1 % slower".

    >>> _against(0.959).replace(NBSP, " "), _against(1.0002)
    ('4.1 % slower', 'level')
    """
    if abs(speed - 1) < _LEVEL:
        return "level"
    return f"{percent(abs(speed - 1))} {'slower' if speed < 1 else 'faster'}"


def _no_penalty(found: Found) -> str:
    return "unknown: no run made such a choice" if found.ranked_by == EXPECTATION else "not learned for these constants"


def memory_value(part: Part) -> str:
    """A part of the memory."""
    return f"{ABOUT}{gib(part.size)}" if part.kind == "total" else number(part.size / GIB, 1)


def time_value(total: float) -> Callable[[Part], str]:
    """Text of a part of the step: its share of `total`; of the whole, seconds."""

    def text(part: Part) -> str:
        if part.kind == "total":
            return f"{ABOUT}{seconds(part.size)}"
        return f"{number(100 * part.size / total, 1)}{NBSP}%" if part.size else "0"

    return text


def like_this(near: pl.DataFrame, runs: int) -> str:
    """How close the store's runs come to the layout."""
    if not runs:
        return "The store has no completed run of this model on this accelerator."
    same = near.filter(pl.col("distance") == 0).height
    of = f"of the {count(runs, 'run')} of this model on this accelerator"
    return f"{number(same)} {of} had exactly this layout." if same else f"None {of} had exactly this layout; nearest:"


def nearest_run(row: Row) -> tuple[str, str]:
    """A measured run beside the layout: its layout and what is not the same, then measured and estimated MFU."""
    other = ", ".join(_value(name, row[name]) for name in row["differs"])
    difference = f"differs in {other}" if other else "the same"
    measured = performance(row, unit="")
    estimated = f" · {ABOUT}{percent(row['est_mfu'])}" if row["est_mfu"] is not None else ""
    return f"{row['layout'] or 'layout unknown'}: {difference}", f"{measured}{estimated}"


def _value(name: str, value: Any) -> str:
    """One setting in short.

    >>> _value("tp", 4), _value("num_gpus", 64), _value("recompute", "full"), _value("gbs_tokens", 2**20)
    ('TP4', '64 GPUs', 'full recompute', '1M-token batch')
    >>> _value("vpp", None), _value("recompute", None)
    ('VPP (not stated)', 'recompute (not stated)')
    """
    if value is None:
        return f"{_SHORT.get(name, name)} (not stated)"
    if name == "num_gpus":
        return count(value, "GPU")
    if name == "gbs_tokens":
        return f"{token_count(value)}-token batch"
    if name == "seq_len":
        return f"sequence {number(value)}"
    if name == "recompute":
        return "no recompute" if value == "none" else f"{value} recompute"
    return f"{_SHORT[name]}{value}"
