"""Columns as readers see them: name, unit and shown value. Units come from `schemas`, names from `column_names`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from sweepscope.dashboard.format.column_names import NAMES
from sweepscope.dashboard.format.implementation import OTHER, framework_name
from sweepscope.dashboard.format.numbers import GIB, MISSING, NBSP, capital, moment, number, significant
from sweepscope.schemas.core.column import Column
from sweepscope.schemas.registry import COLUMNS

_SUFFIXES = ("_bytes", "_tflops", "_s")


def names(text: str) -> tuple[str, ...]:
    """Names of columns that are written one after another, with blanks between.

    >>> names("mfu step_time_s")
    ('mfu', 'step_time_s')
    """
    return tuple(text.split())


_ACRONYMS = names("mfu hfu dp tp pp cp ep vpp mbs gas gbs zero nccl cuda id gpu")


def column_label(name: str) -> str:
    """Display name of a column, without its unit.

    >>> column_label("mfu"), column_label("step_time_s"), column_label("runner_up_mfu")
    ('MFU', 'Step time', 'Runner up MFU')
    """
    if name in NAMES:
        return NAMES[name]
    bare = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
    return capital(" ".join(word.upper() if word in _ACRONYMS else word for word in bare.split("_")))


@dataclass(frozen=True)
class Shown:
    """How a unit is shown: factor from the base unit, decimals, and the unit's name in a heading ("" = none)."""

    factor: float
    decimals: int
    unit: str


_BY_UNIT = {
    "fraction": Shown(100, 1, "%"),
    "bytes": Shown(1 / GIB, 1, "GiB"),
    "s": Shown(1, 3, "s"),
    "TFLOP/s": Shown(1, 0, "TFLOP/s"),
    "GPU·h": Shown(1, 1, "GPU·h"),
    "$": Shown(1, 2, ""),
    "$/(GPU·h)": Shown(1, 2, ""),
    "$/Mtoken": Shown(1, 3, ""),
    "kWh": Shown(1, 2, "kWh"),
    "bytes/s": Shown(1e-9, 1, "GB/s"),
    "tokens": Shown(1, 0, "tokens"),
    **dict.fromkeys(names("tokens/s tokens/s/GPU TFLOP/s/GPU sequences steps count id"), Shown(1, 0, "")),
}
_FRACTIONS = names(
    "likely_mfu ceiling_mfu winner_lead gain chance gain_per_gpu_hour hit_rate selects winner_rate regret "
    "typical_regret other_regret time_error mem_error unseen_median_error unseen_mean_error interval_coverage"
)
_QUERY_UNITS = {
    "other_tokens_per_s_per_gpu": "tokens/s/GPU",
    "other_mfu": "fraction",
    "other_repeats": "count",
    "gpu_hours_per_t_tokens": "count",
    "cost_usd": "count",
    **dict.fromkeys(_FRACTIONS, "fraction"),
    **dict.fromkeys(names("believed_step_time_s believed_lo_s believed_hi_s"), "s"),
    "need_bytes": "bytes",
    "rows": "count",
    "cpu_ranks": "count",
    "test_gpu_hours": "GPU·h",
}
"""Units of columns that only queries of pages have."""
_RATIO = Shown(1, 2, "")
_MIB = ("mib", "difference_mib", "against_mib")
_RATIOS = names(
    "ratio est_penalty time_ratio time_ratio_p10 time_ratio_p90 mem_ratio est_rho_tp est_compute_per_comm "
    "est_dp_per_pass"
)


def shown(name: str) -> Shown | None:
    """How a numeric column is shown, or None for text, flags, times and units shown as they are."""
    if name in _RATIOS:
        return _RATIO
    if name in _MIB:
        return Shown(1, 1, "")
    column: Column | None = COLUMNS.get(name)
    unit = column.unit if column else _QUERY_UNITS.get(name)
    return _BY_UNIT.get(unit) if unit else None


def heading(name: str) -> str:
    """Column heading with the unit it is shown in.

    >>> heading("mem_peak_allocated_bytes"), heading("layout")
    ('Peak allocated, GiB', 'Layout')
    """
    how = shown(name)
    return f"{column_label(name)}, {how.unit}" if how and how.unit else column_label(name)


def display_frame(frame: pl.DataFrame, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """`frame` in shown units under shown headings, for a table on a page. NULL stays NULL."""
    chosen = list(columns) if columns is not None else frame.columns
    out = []
    for name in chosen:
        how = shown(name) if frame.schema[name].is_numeric() else None
        value = pl.col(name) if how is None or how.factor == 1 else pl.col(name) * how.factor
        if name == "framework" and frame.schema[name] == pl.String:
            value = value.replace({OTHER: framework_name(OTHER)})
        out.append(value.alias(heading(name)))
    return frame.select(out)


def value_text(name: str, value: object) -> str:
    """One value of a column as text with its unit, e.g. for a fact list."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if name == "framework":
        return str(framework_name(str(value)))
    how = shown(name)
    if how is None or not isinstance(value, (int, float)):
        return str(value)
    text = significant(value) if how.unit == "s" else number(value * how.factor, how.decimals)
    return f"{text}{NBSP}{how.unit}" if how.unit else text
