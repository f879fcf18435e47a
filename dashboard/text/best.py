"""The answer, the conditions and the alt texts of Best configurations."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.implementation import OTHER, phrase
from sweepscope.dashboard.format.metrics import Metric, performance
from sweepscope.dashboard.format.numbers import count, gib, number, unbroken
from sweepscope.dashboard.selection.filters import GRID, Filters, chips
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text.cell import UNKNOWN_LAYOUT, Cell, cell_name, certainty, lead, where
from sweepscope.dashboard.view_models.cells import best_first


def cell_answer(cell: Cell, metric: str = "") -> str:
    """The fastest layout of the selected cell, its lead and how sure that is; or why the cell is empty.

    Where cost is the chosen `metric`, what a million tokens cost with it follows.
    """
    if cell["run_id"] is None:
        return empty_answer(cell)
    layout = unbroken(cell["layout"] or UNKNOWN_LAYOUT) + (f", {options}" if (options := cell.get("options")) else "")
    ran_by = phrase(cell, [name for name in {"framework", *cell["differing"]} if cell[name]])
    return (
        f"On {where(cell)}, {cell['model']} trains fastest with **{layout}: {performance(cell)}**{ran_by}, "
        f"{lead(cell)}.{certainty(cell)}{_cost(cell) if metric == 'cost' else ''}"
    )


def _cost(cell: Cell) -> str:
    if cell["usd_per_m_tokens"] is None:
        return ""
    return f" A million tokens cost **{numbers.dollars(cell['usd_per_m_tokens'])}**."


def empty_answer(cell: Cell) -> str:
    """What happened in a cell without a ranked run."""
    state, tried = cell["cell_state"], cell["runs_tried"]
    if state == "planned":
        runs = count(cell["runs_planned"], "run")
        return f"**{cell_name(cell)} was not run yet**: {runs} planned ({cell['plan_id']})."
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
    best = best_first(answered).row(0, named=True)
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
    named = cells.filter(pl.col("framework") != OTHER)["framework"]
    frameworks = named.unique().sort().to_list()
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
    "A layout that was not tried cannot win. On a bar, the line is the 95 % interval and each tick one repeat; without "
    "repeats on as many nodes, the interval is assumed from bundled sweeps.",
)


def default_cell(grid: pl.DataFrame) -> tuple[str, str]:
    """The cell selected at first: the best MFU, else the highest throughput, else the first cell."""
    row = best_first(grid).row(0, named=True)
    return row["model"], row["scale"]


def estimated(grid: pl.DataFrame, values: Mapping[tuple[str, str], float]) -> str:
    """What a tilde in an empty cell means, and of how many such cells there are; empty where there is none."""
    empty = grid.filter(pl.col("run_id").is_null()).height
    if not values:
        return ""
    some = "" if len(values) == empty else f", in {number(len(values))} of {number(empty)} empty cells"
    return f"estimated for the layout that should be fastest{some}"


def track(grid: pl.DataFrame) -> str:
    """Meaning of the length of a memory track."""
    sizes = grid["memory_bytes"].drop_nulls().unique().to_list()
    return f"track = {gib(sizes[0])}" if len(sizes) == 1 else "track = usable memory of the card"


OTHER_MODELS = " The selector Model of Best configurations leads to each of the others."


def left_out(drawn: pl.DataFrame, grid: pl.DataFrame, way: str = "") -> str:
    """How many models of the grid are drawn, and the `way` to the others; empty where all are."""
    few, all_models = drawn["model"].n_unique(), grid["model"].n_unique()
    if few == all_models:
        return ""
    return f"{number(few)} of {number(all_models)} models are drawn, those with the most completed runs.{way}"


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
