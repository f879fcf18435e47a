"""One cell in words: where it stands, who leads it and how sure that is. Shared by the pages that show the grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.metrics import Metric
from sweepscope.dashboard.format.numbers import count, number, percent, points
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.view_models.explorer import Pick
from sweepscope.pipeline.reference.layout_text import full_layout_text

Cell = Mapping[str, Any]


def is_tie(cell: Cell) -> bool:
    """True when winner and runner-up cannot be told apart: the margin is within the noise of the repeats."""
    return cell["margin"] is not None and bool(cell["margin"] <= cell["noise"])


def performance(cell: Cell) -> str:
    """MFU where it is known, else tokens/s/GPU."""
    if cell["mfu"] is not None:
        return f"{percent(cell['mfu'])} MFU"
    return f"{number(cell['tokens_per_s_per_gpu'])} tokens/s/GPU"


def lead(cell: Cell) -> str:
    """How far the winner is ahead, as the end of a sentence."""
    if cell["runner_up_run_id"] is None:
        return "the only layout that completed"
    if is_tie(cell):
        return "level with the runner-up"
    if cell["mfu"] is not None and cell["runner_up_mfu"] is not None:
        gap = cell["mfu"] - cell["runner_up_mfu"]
        size = points(gap).lstrip("+")
        return f"{size}{numbers.NBSP}{'point' if size == '1.0' else 'points'} ahead of the runner-up"
    if cell["margin"] >= 1:
        return f"{numbers.ratio(1 + cell['margin'])} as fast as the runner-up"
    return f"{percent(cell['margin'])} faster than the runner-up"


def certainty(cell: Cell) -> str:
    """What the number of repeats allows to say."""
    repeats = cell["repeats"] or 1
    if cell["runner_up_run_id"] is None:
        return "" if repeats == 1 else f" Repeated {number(repeats)} times, spread {percent(cell['repeat_spread'])}."
    if is_tie(cell):
        return f" The gap is within the noise ({percent(cell['noise'])}); a repeat of both would settle it."
    if repeats == 1:
        return " The winner ran once, so treat the lead as likely, not proven."
    spread = percent(cell["repeat_spread"])
    return f" The winner ran {number(repeats)} times, and the lead exceeds their spread of {spread}."


def where(cell: Cell) -> str:
    """The cell's column in words: "16 nodes", or "1 node with 4 GPUs" where nodes alone do not tell."""
    gpus = f" with {count(cell['num_gpus'], 'GPU')}" if cell["scale"] != str(cell["num_nodes"]) else ""
    return f"{count(cell['num_nodes'], 'node')}{gpus}"


def gpus_aside(cell: Cell) -> str:
    """Number of GPUs ("· 128 GPUs") after a place that does not name them already."""
    is_plain = cell["scale"] == str(cell["num_nodes"]) and cell["num_gpus"] is not None
    return f"· {count(cell['num_gpus'], 'GPU')}" if is_plain else ""


def place(cell: Cell) -> str:
    """Model and column: "8.86B on 16 nodes"."""
    return f"{cell['model']} on {where(cell)}"


def hover(cell: Cell, metric: Metric, pick: Pick | None = None) -> str:
    """At most five lines: subject, layout, value, comparison, outcomes; in an empty cell what is expected of `pick`."""
    lines = [f"<b>{numbers.plain(place(cell))}</b> {gpus_aside(cell)}"]
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
