"""Sentences of Trade-offs, each computed from the rows on screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sweepscope.dashboard.format.devices import devices
from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import (
    count,
    dollars,
    gib,
    number,
    percent,
    plain,
    seconds,
    token_count,
    unbroken,
)
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.view_models.tradeoffs import NEAR, QUANTITIES, Change, best_and_lean, label

TITLE = "Trade-offs"
SHOWN = {
    "front": "Pareto front",
    "free": "Free plot",
    "parallel": "Parallel coordinates",
    "factor": "One factor at a time",
}
NOTHING_TO_WEIGH = (
    "**Nothing to weigh here: of these layouts only the speed is known, or only one was measured.** Log the peak "
    "memory, or choose a model that ran on several node counts."
)
HOW_TO_READ = {
    "front": "**How to read it.** A layout is on the front where no other one is at least as fast for less. Grey dots "
    "are beaten on both. Click a dot for its run.",
    "free": "**How to read it.** Each dot is a completed layout, the median over its repeats. Where categories lie "
    "across, a box spans the middle half of them; N/A is a value that was not logged.",
    "parallel": "**How to read it.** Each line is a completed layout, coloured by MFU. Drag along an axis to keep the "
    "lines that pass there, drag the title to move the axis; N/A is a value that was not logged.",
    "factor": "**How to read it.** Each bar is a measured layout that differs from the cell's fastest in that one "
    "setting; data parallelism and accumulation follow from it. A setting without a bar was never changed alone.",
}
HIDES = (
    "**What it hides.** Only what was tried and completed is here: a gap may be a layout that ran out of memory, or "
    "one that was not run. One batch, sequence and accelerator at a time, as chosen under Filters."
)


def value(name: str, row: Mapping[str, object]) -> str:
    """A quantity of a row with its unit."""
    on = row.get("accelerator")
    texts = {
        "mfu": lambda one: f"{percent(one)} MFU",
        "tokens_per_s_per_gpu": lambda one: f"{number(one)} tokens/s/GPU",
        "mem_peak_bytes": gib,
        "usd_per_m_tokens": lambda one: f"{dollars(one)} per million tokens",
        "step_time_s": lambda one: f"{seconds(one)} a step",
        "num_gpus": lambda one: devices(one, None if on is None else str(on)),
    }
    found = row[name]
    return "not logged" if found is None else str(texts[name](found))  # type: ignore[no-untyped-call]  # lambdas


def layout(row: Row) -> str:
    """A layout on one line."""
    return unbroken(row["layout"] or "layout unknown")


def front_answer(points: pl.DataFrame, gain: str, spend: str) -> str:
    """How many layouts nothing beats, the fastest, and the leanest that is nearly as fast."""
    found = best_and_lean(points, gain, spend)
    if not found:
        return f"**No completed layout here logs both {label(gain)} and {label(spend)}.** Choose another cell."
    best, on_front = points.row(found[0], named=True), int(points["is_front"].sum())
    text = (
        f"**{number(on_front)} of {count(points.height, 'layout')} {'is' if on_front == 1 else 'are'} on the front**; "
        f"the fastest, {layout(best)}, has {value(gain, best)} with {value(spend, best)}."
    )
    if found[1] is None:
        return f"{text} None within {percent(1 - NEAR, 0)} of it takes less."
    lean = points.row(found[1], named=True)
    return f"{text} {layout(lean)} keeps {percent(lean[gain] / best[gain], 0)} of that with {value(spend, lean)}."


def without_point(ended: pl.DataFrame) -> str:
    """How many runs did not fit, or failed otherwise, and so have no point; "" where none did.

    `ended` has rows of `queries.cells.outcomes`.
    """
    failed = ended.filter("is_failure")
    in_memory = int(failed.filter(status="oom")["runs"].sum())
    otherwise = int(failed["runs"].sum()) - in_memory
    parts = [
        f"{count(in_memory, 'run')} that ran out of GPU memory" if in_memory else "",
        f"{count(otherwise, 'run')} that failed{' otherwise' if in_memory else ''}" if otherwise else "",
    ]
    return f"Not drawn: {' and '.join(filter(None, parts))}." if in_memory or otherwise else ""


def free_answer(rows: pl.DataFrame, x: str, y: str) -> str:
    """How many layouts have both values, and which value of `x` has the highest median of `y`."""
    both = rows.drop_nulls([x, y])
    if both.height < 2:
        return f"**Fewer than two layouts log both {label(x)} and {label(y)}.**"
    text = f"**{count(both.height, 'layout')}** with {label(x)} and {label(y)}"
    if x in QUANTITIES:
        return f"{text}."
    medians = both.group_by(x).agg(pl.col(y).median(), pl.len()).sort(y, x, descending=not QUANTITIES[y].is_less_better)
    best = medians.row(0, named=True)
    return (
        f"{text}; the best median is at **{label(x)} {best[x]}**: {value(y, best)} over {count(best['len'], 'layout')}."
    )


def parallel_answer(rows: pl.DataFrame) -> str:
    """How many lines, and what the fastest one is."""
    if rows.is_empty():
        return "**No completed layout here.**"
    best = rows.sort("tokens_per_s_per_gpu", descending=True, nulls_last=True).row(0, named=True)
    return f"**{count(rows.height, 'layout')}**, the fastest {layout(best)}: {performance(best)}."


def factor_answer(changes: Sequence[Change], base: Row | None) -> str:
    """Which single change of the fastest layout costs least and most."""
    if base is None:
        return "**No completed layout here.**"
    name = layout(base)
    if not changes:
        return (
            f"**Nothing was changed alone from {name}**, the fastest of its cell: every other layout differs in more."
        )
    ordered = sorted(changes, key=lambda one: one.ratio)
    worst, best = ordered[0], ordered[-1]
    text = f"From **{name}** ({performance(base)}), {_change(worst)} costs most: {percent(worst.ratio - 1)}"
    return f"{text}." if best is worst else f"{text}; {_change(best)} least: {percent(best.ratio - 1)}."


def _change(one: Change) -> str:
    return f"**{label(one.factor)} {one.before} → {one.after}**"


def hover(row: Row, *quantities: str) -> str:
    """Model, size and layout of a dot, then the quantities of the axes and its repeats."""
    gpus = row["num_gpus"]
    size = devices(gpus, row.get("accelerator")) if gpus else count(row["num_nodes"], "node")
    shown = dict.fromkeys(name for name in quantities if name in QUANTITIES)
    lines = [str(row["layout"] or "layout unknown"), *(value(name, row) for name in shown)]
    subject = plain(f"{row['model']}, {size}")
    return "<br>".join([f"<b>{subject}</b>", *map(plain, lines)])


def meta(chosen: Slice, rows: int) -> str:
    """How many layouts, on what."""
    parts = [
        count(rows, "completed layout"),
        chosen.accelerator or "accelerator unknown",
        f"sequence {number(chosen.seq_len)}" if chosen.seq_len is not None else "sequence unknown",
        f"{token_count(chosen.gbs_tokens)}-token batch" if chosen.gbs_tokens is not None else "batch unknown",
    ]
    return ", ".join(parts)


def chart_alt(kind: str, rows: int, *names: str) -> str:
    """The chart in a sentence."""
    axes = " and ".join(label(name) for name in names)
    return f"{SHOWN[kind]} of {count(rows, 'layout')}{': ' if axes else ''}{axes}."
