"""The answer, the panel and the alt texts of Best configurations."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.metrics import Metric, performance
from sweepscope.dashboard.format.numbers import between, count, gib, number, percent, unbroken
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.selection.filters import GRID, Filters, chips
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text.cell import UNKNOWN_LAYOUT, Cell, cell_name, certainty, lead, where
from sweepscope.dashboard.view_models.cells import outcome_text
from sweepscope.dashboard.view_models.explorer import Pick
from sweepscope.dashboard.view_models.ranking import shows_mfu
from sweepscope.pipeline.reference.layout_text import full_layout_text, layout_key


def cell_answer(cell: Cell) -> str:
    """The fastest layout of the selected cell, its lead and how sure that is; or why the cell is empty."""
    if cell["run_id"] is None:
        return empty_answer(cell)
    layout = unbroken(cell["layout"] or UNKNOWN_LAYOUT)
    return (
        f"On {where(cell)}, {cell['model']} trains fastest with **{layout}: {performance(cell)}**, "
        f"{lead(cell)}.{certainty(cell)}"
    )


def empty_answer(cell: Cell) -> str:
    """What happened in a cell without a ranked run."""
    state, tried = cell["cell_state"], cell["runs_tried"]
    if state == "not_run":
        return f"**{cell_name(cell)} was not run.**"
    if state == "impossible":
        return f"**{cell_name(cell)} is impossible**: {cell['cell_reason']}, and it has {number(cell['num_gpus'])}."
    tries = f"{count(tried, 'try', 'tries')}, none completed" if tried else "never tried"
    if state == "wont_fit":
        return f"**{cell_name(cell)} has no working layout yet**: {tries}.{_states_bound(cell)}"
    if state == "quarantined":
        return f"**{cell_name(cell)} has no ranked run**: {cell['outcome']}, and what completed is quarantined."
    return f"**{cell_name(cell)} has no working layout yet**: {cell['outcome']}."


def _states_bound(cell: Cell) -> str:
    bound, card = cell["states_lower_bound_bytes"], cell["memory_bytes"]
    if bound is None or card is None:
        return ""
    return (
        f" Weights, gradients and optimizer take {gib(bound, 0)} per GPU even fully sharded, before any activation; "
        f"the card has {gib(card)}."
    )


def filtered_answer(cells: pl.DataFrame, filters: Filters) -> str:
    """What the active filters leave of the grid."""
    answered = cells.filter(pl.col("run_id").is_not_null())
    if answered.is_empty():
        return nothing_matches(cells, filters)
    by = "mfu" if answered["mfu"].count() else "tokens_per_s_per_gpu"
    best = answered.sort(by, descending=True, nulls_last=True).row(0, named=True)
    return (
        f"With {_named(filters)}, **{number(answered.height)} of {count(cells.height, 'cell')} have a result**; "
        f"the best is {performance(best)} for {cell_name(best)} with {unbroken(best['layout'] or UNKNOWN_LAYOUT)}."
    )


def nothing_matches(cells: pl.DataFrame, filters: Filters) -> str:
    """Why the filters leave no result, and what to do."""
    tried = int(cells["runs_tried"].sum())
    what = f"{count(tried, 'try', 'tries')}, none completed" if tried else "never tried"
    reasons = cells.filter(pl.col("cell_state") == "impossible")["cell_reason"].unique().to_list()
    sizes = cells["num_gpus"].drop_nulls().to_list()
    if not tried and len(reasons) == 1 and sizes and (cells["cell_state"] == "impossible").all():
        what = f"{reasons[0]}, and the largest cell has {number(max(sizes))}"
    return f"**No completed run matches {_named(filters)}**: {what}. Remove a filter to see more."


def _named(filters: Filters) -> str:
    """The filters that narrow the slice, in words."""
    return ", ".join(chip.label for chip in chips(filters) if chip.name not in GRID)


def scope(shown: int, of_origin: int, origin: str) -> str:
    """How many runs are on screen, of how many of this origin.

    >>> scope(10, 10, "measured"), scope(10, 23, "measured")
    ('10 runs', '10 of 23 measured runs')
    """
    return count(shown, "run") if shown >= of_origin else f"{number(shown)} of {count(of_origin, f'{origin} run')}"


def conditions(chosen: Slice, cells: pl.DataFrame, of_origin: int) -> str:
    """n, hardware and batch of the grid, for the meta line."""
    frameworks = cells["framework"].drop_nulls().unique().sort().to_list()
    parts = [
        scope(int(cells["runs_tried"].sum()), of_origin, chosen.origin),
        chosen.study,
        ", ".join(frameworks[:3]) + (" and others" if len(frameworks) > 3 else ""),
        chosen.accelerator or "accelerator unknown",
        f"sequence {number(chosen.seq_len)}" if chosen.seq_len is not None else "sequence unknown",
        f"{numbers.token_count(chosen.gbs_tokens)}-token batch" if chosen.gbs_tokens is not None else "batch unknown",
    ]
    mfu = "MFU recomputed from it" if cells["mfu"].count() else "no MFU could be computed"
    return ", ".join(part for part in parts if part) + f". Ranked by tokens/s/GPU; {mfu}."


NO_GRID = (
    "**No run has a cell yet.** A cell needs a model, a node count, a sequence length and a batch; "
    "the runs themselves are under Runs."
)

LAYOUT_KEY = (
    "Layouts: DP, TP, PP, CP and EP are the degrees of data, tensor, pipeline, context and expert parallelism; GAS "
    "micro-batches per step, of MBS sequences each; Z the ZeRO stage."
)

HOW_TO_READ = (
    "**How to read it.** Each cell shows the fastest layout by tokens/s/GPU, the median over its repeats after "
    "warm-up. Select a cell, or choose model and nodes above, for its ranking. A value in italics after a tilde was "
    "never measured: the estimator expects it of the layout that should be fastest there.",
    "**What it hides.** The batch in tokens is fixed, so more nodes also mean fewer micro-batches each. "
    "A layout that was not tried cannot win, and a single run does not show its noise.",
)


def default_cell(grid: pl.DataFrame) -> tuple[str, str]:
    """The cell selected at first: the best MFU, else the highest throughput, else the first cell."""
    by = "mfu" if grid["mfu"].count() else "tokens_per_s_per_gpu"
    row = grid.sort(by, descending=True, nulls_last=True).row(0, named=True)
    return row["model"], row["scale"]


def big_number(cell: Cell) -> tuple[str, str]:
    """The panel's figure and its unit."""
    if cell["mfu"] is not None:
        return percent(cell["mfu"]), "MFU"
    return number(cell["tokens_per_s_per_gpu"]), "tokens/s/GPU"


def facts(cell: Cell) -> list[tuple[str, str]]:
    """What the panel lists of the winner."""
    peak = "not logged" if cell["mem_peak_bytes"] is None else gib(cell["mem_peak_bytes"])
    if cell["mem_peak_bytes"] is not None and cell["memory_bytes"] is not None:
        peak = f"{number(cell['mem_peak_bytes'] / numbers.GIB, 1)} of {gib(cell['memory_bytes'])}"
    repeats = cell["repeats"] or 1
    spread = "no repeat" if repeats == 1 else f"spread {percent(cell['repeat_spread'])}"
    return [
        ("Throughput", f"{number(cell['tokens_per_s_per_gpu'])} tokens/s/GPU"),
        ("Step time", numbers.seconds(cell["step_time_s"]) if cell["step_time_s"] is not None else "not logged"),
        ("Peak memory", peak),
        ("Evidence", f"{count(repeats, 'run')}, {spread}"),
        ("Outcomes", cell["outcome"]),
    ]


def pick_rows(pick: Pick, ranked: pl.DataFrame, tries: pl.DataFrame, cell: Cell) -> list[tuple[str, str]]:
    """The estimator's pick for the cell, and its measured value and rank if it was run.

    `ranked` are the completed layouts of the cell in rank order, `tries` how runs of each of its layouts ended.
    """
    if pick.row is None or pick.mfu is None:
        none = "nothing can be launched"
        lean = f"nothing fits: the leanest needs ~{gib(pick.need_bytes, 0)}"
        return [("Pick", none if isnan(pick.need_bytes) else lean)]
    likely = f", {between(pick.interval)} likely" if pick.interval else ""
    # Without a penalty learned from comparable runs, the likely MFU is unknown.
    is_learned = pick.interval is not None or pick.row.get("est_penalty") is not None
    name = "Likely" if is_learned else "The hardware allows"
    rows = [("Pick", full_layout_text(pick.row)), (name, f"~{percent(pick.mfu)}{likely}")]
    wanted = layout_key(pick.row)
    row = next((row for row in ranked.iter_rows(named=True) if layout_key(row) == wanted), None)
    if row is None:
        alike = [layout_key(row) == wanted for row in tries.iter_rows(named=True)]
        return [*rows, ("Measured", _unranked(tries.filter(pl.Series(alike, dtype=pl.Boolean)), cell))]
    rank = f"rank {number(row['rank_in_cell'])} of {number(ranked.height)}"
    return [*rows, ("Measured", f"{performance(row, unit='')}, {rank}")]


def _unranked(tries: pl.DataFrame, cell: Cell) -> str:
    """Outcomes of a layout without a rank, or that it was not tried, and the outcomes of the others."""
    by_status = dict(tries.group_by("status").agg(pl.col("runs").sum()).iter_rows())
    if by_status:
        return f"tried: {outcome_text(by_status)}"
    if cell["run_id"] is None and cell["runs_tried"]:
        return f"not tried; of {count(cell['runs_tried'], 'other try', 'other tries')} none completed"
    return "not tried" if cell["runs_tried"] else "not tried, nor is any other layout"


def estimated(grid: pl.DataFrame, values: Mapping[tuple[str, str], float]) -> str:
    """What a tilde in an empty cell means, and of how many such cells there are; empty where there is none."""
    empty = grid.filter(pl.col("run_id").is_null()).height
    if not values:
        return ""
    some = "" if len(values) == empty else f", in {number(len(values))} of {number(empty)} empty cells"
    return f"estimated for the layout that should be fastest{some}"


def panel_reason(cell: Cell) -> str:
    """Why the selected cell has no winner, for the panel."""
    mark = CELL_STATE[cell["cell_state"]]
    reason = cell["cell_reason"] or cell["short_reason"]
    return f"**{mark.text}**" + (f" · {reason}" if reason else "")


def ranking_qualifier(ranked: pl.DataFrame) -> str:
    """What the bars show."""
    unit = "MFU %, gap in tokens/s/GPU" if shows_mfu(ranked.head(6)) else "tokens/s/GPU, gap to the winner"
    more = f", first 6 of {number(ranked.height)}" if ranked.height > 6 else ""
    return f"{unit}{more}"


def track(grid: pl.DataFrame) -> str:
    """Meaning of the length of a memory track."""
    sizes = grid["memory_bytes"].drop_nulls().unique().to_list()
    return f"track = {gib(sizes[0])}" if len(sizes) == 1 else "track = usable memory of the card"


def grid_alt(grid: pl.DataFrame, metric: Metric) -> str:
    """The heatmap in one sentence, for readers who cannot see it."""
    answered = grid.filter(pl.col(metric.column).is_not_null())
    size = f"Grid of {count(grid['model'].n_unique(), 'model')} by {count(grid['scale'].n_unique(), 'node count')}"
    if answered.is_empty():
        return f"{size}; no cell has a value for {metric.label}."
    ordered = answered.sort(metric.column, descending=not metric.is_less_better)
    first, last = ordered.row(0, named=True), ordered.row(-1, named=True)
    empty = count(grid.height - answered.height, "empty cell")
    return (
        f"{size}, {metric.label} of the best layout: from {metric.text(first[metric.column])} for {cell_name(first)} "
        f"to {metric.text(last[metric.column])} for {cell_name(last)}; {empty}."
    )


def memory_alt(grid: pl.DataFrame) -> str:
    """The memory tracks in one sentence."""
    known = grid.filter(pl.col("mem_peak_bytes").is_not_null()).sort("mem_peak_bytes")
    if known.is_empty():
        return "No winner has a logged peak memory."
    low, high = known.row(0, named=True), known.row(-1, named=True)
    return (
        f"Peak memory of each winner, from {gib(low['mem_peak_bytes'])} for {cell_name(low)} "
        f"to {gib(high['mem_peak_bytes'])} for {cell_name(high)}."
    )
