"""The panel of one cell on Best configurations: its figure, its facts and the estimator's pick."""

from __future__ import annotations

from math import isnan

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.implementation import label
from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import between, count, gib, number, percent
from sweepscope.dashboard.format.printed_mfu import beside_computed
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.text.allowed import allowed
from sweepscope.dashboard.text.cell import Cell, noise, repeats
from sweepscope.dashboard.view_models.cells import outcome_text
from sweepscope.dashboard.view_models.explorer import Pick
from sweepscope.dashboard.view_models.ranking import unit
from sweepscope.pipeline.reference.layout_text import full_layout_text, layout_key


def big_number(cell: Cell, metric: str = "") -> tuple[str, str]:
    """The panel's figure and its unit: dollars where cost is the chosen `metric` and known."""
    if metric == "cost" and cell["usd_per_m_tokens"] is not None:
        return numbers.dollars(cell["usd_per_m_tokens"]), "per million tokens"
    if cell["mfu"] is not None:
        return percent(cell["mfu"]), "MFU"
    return number(cell["tokens_per_s_per_gpu"]), "tokens/s/GPU"


def facts(cell: Cell) -> list[tuple[str, str]]:
    """What the panel lists of the winner."""
    peak = "not logged" if cell["mem_peak_bytes"] is None else gib(cell["mem_peak_bytes"])
    if cell["mem_peak_bytes"] is not None and cell["memory_bytes"] is not None:
        peak = f"{number(cell['mem_peak_bytes'] / numbers.GIB, 1)} of {gib(cell['memory_bytes'])}"
    return [
        ("Throughput", f"{number(cell['tokens_per_s_per_gpu'])} tokens/s/GPU"),
        *([("MFU as printed", printed)] if (printed := beside_computed(cell)) else []),
        *_price(cell),
        ("Step time", numbers.seconds(cell["step_time_s"]) if cell["step_time_s"] is not None else "not logged"),
        ("Peak memory", peak),
        *([("Setup", label(cell, cell["differing"]))] if cell["differing"] else []),
        ("Evidence", repeats(cell)),
        ("Noise", noise(cell)),
        ("Outcomes", cell["outcome"]),
        *([("Not ranked", cell["unranked_reason"])] if cell["unranked_reason"] else []),
    ]


def _price(cell: Cell) -> list[tuple[str, str]]:
    """What a million tokens cost, where the accelerator has a price."""
    if cell.get("usd_per_m_tokens") is None:
        return []
    price = numbers.dollars(cell["usd_per_gpu_hour"])
    return [("Cost", f"{numbers.dollars(cell['usd_per_m_tokens'])} per million tokens at {price} per GPU-hour")]


def pick_rows(pick: Pick, ranked: pl.DataFrame, tries: pl.DataFrame, cell: Cell) -> list[tuple[str, str]]:
    """The estimator's pick for the cell, and its measured value and rank if it was run.

    `ranked` are the completed layouts of the cell in rank order, `tries` how runs of each of its layouts ended.
    """
    if pick.row is None or pick.mfu is None:
        none = "nothing can be launched"
        lean = f"nothing fits: the leanest needs ~{gib(pick.need_bytes, 0)}"
        return [("Pick", none if isnan(pick.need_bytes) else lean)]
    rows = [("Pick", full_layout_text(pick.row)), *expected(pick, cell)]
    wanted = layout_key(pick.row)
    row = next((row for row in ranked.iter_rows(named=True) if layout_key(row) == wanted), None)
    if row is None:
        alike = [layout_key(row) == wanted for row in tries.iter_rows(named=True)]
        return [*rows, ("Measured", _unranked(tries.filter(pl.Series(alike, dtype=pl.Boolean)), cell))]
    rank = f"rank {number(row['rank_in_cell'])} of {number(ranked.height)}"
    return [*rows, ("Measured", f"{performance(row, unit='')}, {rank}")]


def expected(pick: Pick, cell: Cell) -> list[tuple[str, str]]:
    """What the pick should reach, compared with the fastest run of the cell: no estimate below it is called a bound."""
    pick = pick.counted_as(cell["mfu"], cell["tokens_per_s_per_gpu"])
    name, doubt = allowed(pick.reached(cell["tokens_per_s_per_gpu"]))
    # Without a penalty learned from comparable runs, the likely MFU is unknown.
    if pick.interval is not None or (pick.row or {}).get("est_penalty") is not None:
        name = "Likely"
    likely = f", {between(pick.interval)} likely" if pick.interval else ""
    if pick.interval is not None and (cell["mfu"] or 0.0) <= pick.interval[1]:
        doubt = ""
    rows = [(name, f"~{percent(pick.mfu or 0.0)}{likely}{f', {doubt}' if doubt else ''}")]
    return [*rows, ("Rests on", pick.constants)] if doubt and pick.constants else rows


def _unranked(tries: pl.DataFrame, cell: Cell) -> str:
    """Outcomes of a layout without a rank, or that it was not tried, and the outcomes of the others."""
    by_status = dict(tries.group_by("status").agg(pl.col("runs").sum()).iter_rows())
    if by_status:
        return f"tried: {outcome_text(by_status)}"
    if cell["run_id"] is None and cell["runs_tried"]:
        return f"not tried; of {count(cell['runs_tried'], 'other try', 'other tries')} none completed"
    return "not tried" if cell["runs_tried"] else "not tried, nor is any other layout"


def panel_reason(cell: Cell) -> str:
    """Why the selected cell has no winner, for the panel."""
    mark = CELL_STATE[cell["cell_state"]]
    reason = cell["cell_reason"] or cell["short_reason"]
    return f"**{mark.text}**" + (f" · {reason}" if reason else "")


_RANKED_IN = {
    "cost": "$ per million tokens; grey: how much faster the winner is",
    "mfu": "MFU %; grey: how much faster the winner is",
    "throughput": "tokens/s/GPU; grey: how much faster the winner is",
}


def ranking_qualifier(ranked: pl.DataFrame, metric: str = "") -> str:
    """What the bars show."""
    more = f", first 6 of {number(ranked.height)}" if ranked.height > 6 else ""
    return f"{_RANKED_IN[unit(ranked.head(6), metric)]}; line: 95 % interval{more}"
