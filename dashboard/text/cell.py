"""Texts about one cell of the grid: its name, its winner, how far that leads and how sure the lead is.

Leads are differences of tokens/s/GPU in percent, the measure that layouts are ranked by. MFU may count FLOPs of
another shape for a runner-up, so a difference of MFUs can contradict the ranking.
"""

from __future__ import annotations

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.devices import devices
from sweepscope.dashboard.format.implementation import IMPLEMENTATION, phrase
from sweepscope.dashboard.format.metrics import Metric, performance
from sweepscope.dashboard.format.numbers import capital, count, faster_than, number, part_of, percent
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.explorer import Pick
from sweepscope.pipeline.reference.layout_text import full_layout_text

Cell = Row
UNKNOWN_LAYOUT = "an unknown layout"


def lead(cell: Cell) -> str:
    """How much faster the winner is than the runner-up, as the end of a sentence."""
    if cell["runner_up_run_id"] is None:
        return "the only layout that completed"
    if cell["is_tie"]:
        ahead = f"{part_of(cell['margin'], 1)} ahead of" if cell["margin"] else "level with"
        return f"{ahead} {_runner_up(cell)}, within the noise"
    return faster_than(cell["margin"], _runner_up(cell))


def _runner_up(cell: Cell) -> str:
    """The runner-up, with its framework, version and cluster where they are others than the winner's."""
    others = {name: cell[f"runner_up_{name}"] for name in IMPLEMENTATION}
    differ = [name for name, value in others.items() if value != cell[name] and (value or name != "framework")]
    is_same = cell["layout"] and cell["runner_up_layout"] == cell["layout"]
    if is_same and (options := cell.get("runner_up_options")):
        return f"the same layout with {options}{phrase(others, differ)}"
    is_same = is_same and differ
    return f"{'the same layout' if is_same else 'the runner-up'}{phrase(others, differ)}"


def certainty(cell: Cell) -> str:
    """A sentence on the chance that the winner is the best, and how noisy runs are; empty where nothing competes."""
    if cell["runner_up_run_id"] is None:
        return "" if (cell["repeats"] or 1) == 1 else f" {capital(repeats(cell))}."
    of = f"of {count(cell['layouts_completed'], 'layout')}" if cell["layouts_completed"] > 2 else "of the two"
    known = f"run-to-run noise {percent(cell['run_noise'])}"
    repeat = " Repeat both to decide." if cell["is_tie"] else ""
    return f" Chance that it is the best {of}: {chance(cell['chance_best'])} ({known}).{repeat}"


def chance(share: float) -> str:
    """A chance in whole percent; never 0 or 100, which no measurement proves.

    >>> [chance(share).replace(numbers.NBSP, " ") for share in (0.663, 0.9999, 0.001)]
    ['66 %', 'over 99 %', 'under 1 %']
    """
    if share > _ALL_BUT_SURE:
        return f"over {percent(_ALL_BUT_SURE, 0)}"
    return f"under {percent(1 - _ALL_BUT_SURE, 0)}" if share < 1 - _ALL_BUT_SURE else percent(share, 0)


_ALL_BUT_SURE = 0.99

_NOISE_BASIS = {
    "own_repeats": "from its own repeats",
    "framework": "from {others}",
    "cluster": "from {others}, in other frameworks",
    "nodes": "from {others}, on other clusters",
    "steps": "from its own steps",
    "bundled": "assumed from bundled sweeps, no repeats here",
}


def noise(cell: Cell) -> str:
    """How much runs of the winner differ by chance, and what that is known from."""
    others = count(cell["noise_repeats"], "repeat")
    basis = _NOISE_BASIS[cell["noise_basis"]].format(others=f"{others} on {count(cell['num_nodes'], 'node')}")
    return f"{percent(cell['run_noise'])} from run to run, {basis}"


def repeats(cell: Cell) -> str:
    """Runs of the winner: each one's tokens/s/GPU, their mean, and the interval of the throughput."""
    runs = cell["repeats"] or 1
    interval = (
        f"95 % interval {number(cell['low_tokens_per_s_per_gpu'])} to {number(cell['high_tokens_per_s_per_gpu'])}"
    )
    if runs == 1:
        return f"1 run, no repeat; {interval}"
    each = ", ".join(number(float(speed)) for speed in str(cell["repeat_speeds"]).split()[:_REPEATS_LISTED])
    more = ", ..." if runs > _REPEATS_LISTED else ""
    return f"{number(runs)} runs ({each}{more}), mean {number(cell['mean_tokens_per_s_per_gpu'])}; {interval}"


_REPEATS_LISTED = 6


def where(cell: Cell) -> str:
    """The cell's column in words: "16 nodes", or "1 node with 4 GPUs" where a node count has several."""
    gpus = (
        f" with {devices(cell['num_gpus'], cell.get('accelerator'))}" if cell["scale"] != str(cell["num_nodes"]) else ""
    )
    return f"{count(cell['num_nodes'], 'node')}{gpus}"


def gpus_aside(cell: Cell) -> str:
    """Number of GPUs ("· 128 GPUs") after a name of the cell that does not hold it already."""
    is_plain = cell["scale"] == str(cell["num_nodes"]) and cell["num_gpus"] is not None
    return f"· {devices(cell['num_gpus'], cell.get('accelerator'))}" if is_plain else ""


def cell_name(cell: Cell) -> str:
    """Model and column: "8.86B on 16 nodes"."""
    return f"{cell['model']} on {where(cell)}"


def hover(cell: Cell, metric: Metric, pick: Pick | None = None) -> str:
    """At most five lines: subject, layout, value, comparison, outcomes; in an empty cell the estimate of `pick`."""
    lines = [f"<b>{numbers.plain(cell_name(cell))}</b> {gpus_aside(cell)}"]
    if cell["run_id"] is None:
        lines.append(CELL_STATE[cell["cell_state"]].text)
        if cell["cell_reason"]:
            lines.append(numbers.plain(_wrapped(str(cell["cell_reason"]))))
        if pick is not None and pick.row is not None and pick.mfu is not None:
            lines.append(numbers.plain(f"Estimated: ~{percent(pick.mfu)} MFU with {full_layout_text(pick.row)}"))
    else:
        lines.append(numbers.plain(cell["layout"] or "layout unknown"))
        value = cell[metric.column]
        shown = f"{metric.label} {metric.text(value)} · " if value is not None and metric.column != "mfu" else ""
        lines.append(f"{shown}{performance(cell)}")
        lines.append(lead(cell))
    lines.append(numbers.plain(cell["outcome"]))
    return "<br>".join(lines)


def _wrapped(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0] + "…"
