"""The answer of Frontier."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import count, number, percent
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.frontier import Dot

LEGEND = (
    "Filled: model FLOPs over the dense BF16 peak, as published. Hollow: another numerator or peak, or derived. "
    "Square: HFU, which counts recomputation. Tick: the highest MFU that the estimate allows that layout."
)
HOW_TO_READ = (
    "**How to read it.** MFU is a share of each chip's own dense BF16 peak, so that A100, H100 and TPU share one axis; "
    "price and tokens/s are another matter. A hollow dot names why it is not comparable with the filled ones. Ranks "
    "count filled dots only. Figures are as published; Runs computes them anew from tokens/s, and names the models for "
    "which that is not comparable.",
    "**What it hides.** Model size, sequence length and batch differ from row to row, and labs publish their good "
    "runs. Small jobs reach a high MFU more easily: compare with rows of your GPU count.",
)
_OWN = {
    "measured": "The best run in this store",
    "published": "The best run of the published sweeps",
    "simulated": "The best simulated run",
}


def answer(dots: Sequence[Dot], origin: str | None) -> str:
    """Where this store's best would rank among the comparable rows on screen."""
    published = [dot for dot in dots if dot.kind == "comparable"]
    best_here = [dot for dot in dots if dot.kind == "own"]
    if len(best_here) == len(dots):
        return (
            "**No published configuration is in this store.** The bundled tables come with the next "
            f"**sweepscope ingest PATH** that does not leave them out.{_best_alone(best_here)}"
        )
    if not best_here or origin is None:
        lead = _span_of(published) if published else "No row on screen has a comparable MFU."
        return f"{lead} This store has no completed run of its own with an MFU yet."
    best = max(best_here, key=lambda dot: dot.value)
    first = f"{_OWN[origin]}, **{percent(best.mfu)} MFU on {count(best.num_gpus or 0, 'GPU')}**"
    printed = _printed(best)
    if not published:
        return f"{first}, has no comparable published run beside it.{printed}"
    rank = 1 + sum(dot.value > best.value for dot in published)
    sizes = [dot.num_gpus for dot in published if dot.num_gpus is not None]
    used = f" They used {_sizes(sizes)}" if sizes else ""
    text = f"{first}, would rank {number(rank)} of {number(len(published) + 1)} among comparable published runs.{used}"
    largest = max(best_here, key=lambda dot: dot.num_gpus or 0)
    if largest is best:
        return f"{text}.{printed}" if used else f"{text}{printed}"
    joint = "; at" if used else " At"
    at_largest = f"{joint} **{count(largest.num_gpus or 0, 'GPU')} the best here is {percent(largest.mfu)}.**"
    return f"{text}{at_largest}{printed}"


def _best_alone(best_here: Sequence[Dot]) -> str:
    """The best run where no published one is there to rank it among."""
    if not best_here:
        return ""
    best = max(best_here, key=lambda dot: dot.value)
    reached = f"{percent(best.mfu)} MFU on {count(best.num_gpus or 0, 'GPU')}"
    return f" The best here reaches **{reached}**.{_printed(best)}"


def _printed(best: Dot) -> str:
    """What its log prints instead, as a doubt about the rank; empty where both agree."""
    return f" Its log prints {best.printed} that ranks it." if best.printed else ""


def _span_of(published: Sequence[Dot]) -> str:
    low, high = min(dot.value for dot in published), max(dot.value for dot in published)
    runs = count(len(published), "comparable published run")
    return f"**{runs}** {'reaches' if len(published) == 1 else 'reach'} {percent(low)} to {percent(high)} MFU."


def _sizes(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return count(low, "GPU") if low == high else f"{number(low)} to {count(high, 'GPU')}"


def bounded(reached: tuple[float, int] | None) -> str:
    """How near published runs come to what the estimator allows; empty where no row has the values for it."""
    if reached is None:
        return ""
    share, rows = reached
    return (
        f"**Ticks.** Comparable published runs reach {percent(share)} of what the estimator allows them (median of "
        f"{count(rows, 'row')}; none of them was fitted). What a source does not state, such as the micro-batch or the "
        "sharding, is chosen to be fastest. A dot beyond its tick has a model or kernels that the estimate does not "
        "know, or shows where it is wrong."
    )


def rivals_named(rivals: Sequence[Row]) -> str:
    """Which published runs the own best is compared with, before the links."""
    names = [str(row["model"]) for row in rivals]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Compare layouts with {listed}:"


def own_link(own: Row) -> str:
    """Name of the link from an own run to that comparison."""
    return f"the best here on {count(own['num_gpus'], 'GPU')}"


def left_out(without_figure: int, hidden: int) -> str:
    """What the chart does not draw, for the note under it; empty when it draws all."""
    parts = []
    if hidden:
        parts.append(f"{count(hidden, 'further row')} of the same models: choose All rows")
    if without_figure:
        parts.append(f"{count(without_figure, 'configuration')} without a published MFU or HFU: only in the table")
    return "Not drawn: " + "; ".join(parts) + "." if parts else ""


def alt(dots: Sequence[Dot]) -> str:
    """What the chart shows, for those who cannot see it."""
    published = sum(dot.kind != "own" for dot in dots)
    top = dots[-1]
    kind = "MFU" if top.mfu is not None else "HFU"
    return (
        f"Dot plot of {count(published, 'published configuration')} by utilisation, the highest {top.name} with "
        f"{percent(top.value)} {kind}. The table below has the same values."
    )
