"""The layouts of an ablation: a base, and the same with one knob turned to the next value either way."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from sweepscope.pipeline.estimate.advice.cell import is_sound
from sweepscope.pipeline.estimate.planning.candidates import LISTED
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.layout_table import layout_table
from sweepscope.pipeline.estimate.search.whatif import Choice, layouts_for, nearest_launchable, options, resolve

_TURNED: Final = ("tp", "pp", "cp", "ep", "vpp", "mbs", "zero_stage", "dp_replicate", "pipeline_schedule")


def neighbours(request: Request, base: Choice) -> list[Choice]:
    """Layouts that can be launched and differ from `base` in one knob, and in what has to follow it."""
    found: list[Choice] = []
    for name, values in options(request, base).items():
        if name in _TURNED:
            for value in _next_to(values, getattr(base, name)):
                turned, left_out = resolve(request, base, {name: value})
                if not left_out and turned not in (base, *found):
                    found.append(turned)
    for mode in request.recompute:
        turned, _ = resolve(request, base, {"recompute": mode})
        if turned not in (base, *found):
            found.append(turned)
    return found


def _next_to(values: list[Any], value: Any) -> list[Any]:
    """The values before and after `value`; all others of a list that has no order."""
    if value not in values or isinstance(value, str):
        return [other for other in values if other != value]
    at = values.index(value)
    return [values[other] for other in (at - 1, at + 1) if 0 <= other < len(values)]


def variations(request: Request, best: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Layouts of an ablation with their prediction, the base first: the fastest measured run of the cell that can be
    laid out, else the first row of `best`; nothing where neither is there."""
    base = _measured_base(request, runs)
    if base is None and best.height:
        base = Choice.of(best.row(0, named=True))
    if base is None:
        return best.clear()
    table = layout_table(request, layouts_for(request, [base, *neighbours(request, base)]))
    return table.with_row_index(LISTED).filter(pl.col("est_mem_free_bytes") > 0)


def _measured_base(request: Request, runs: pl.DataFrame) -> Choice | None:
    sound = runs.filter(is_sound()).sort("step_time_s")
    for row in read_rows(sound).iter_rows(named=True):
        stated = {name: row[name] for name in Choice.__dataclass_fields__ if row.get(name) is not None}
        wanted = Choice.of(stated)
        if nearest_launchable(request, wanted) == wanted:
            return wanted
    return None
