"""Rows and columns that the heatmap and the memory tracks share, so that their cells align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.dashboard.format.devices import CPU, are_ranks, devices
from sweepscope.dashboard.format.numbers import number, plain, shortened
from sweepscope.dashboard.format.theme import Theme

MIN_CELL_WIDTH = 100
MAX_CELL_WIDTH = 190
_SHORT = 10  # letters of a name in one line
_LEAST_OF_FAMILY = 3  # letters, the dots included
HALF = 0.48  # half a cell, less the gap of 4 px


@dataclass(frozen=True)
class Grid:
    """Rows (models, small on top) and columns of a cells frame. `nodes` and `gpus` belong to `scales`, one by one.

    `on_cpu`: the latter are ranks.
    """

    models: tuple[str, ...]
    scales: tuple[str, ...]
    nodes: tuple[int, ...]
    gpus: tuple[int | None, ...]
    on_cpu: bool = False

    @classmethod
    def of(cls, cells: pl.DataFrame) -> Grid:
        """The grid of `cells`: models by parameters (unknown last), then by name; columns by nodes, then by GPUs."""
        rows = cells.select("params", "model").unique().sort("params", "model", nulls_last=True)
        columns = cells.select("num_nodes", "num_gpus", "scale").unique().sort("num_nodes", "num_gpus")
        return cls(
            models=tuple(dict.fromkeys(rows["model"])),
            scales=tuple(columns["scale"]),
            nodes=tuple(columns["num_nodes"]),
            gpus=tuple(columns["num_gpus"]),
            on_cpu=are_ranks(cells),
        )

    def at(self, model: str, scale: str) -> tuple[int, int]:
        """Column and row of a cell."""
        return self.scales.index(scale), self.models.index(model)


def left_margin(models: Sequence[str]) -> int:
    """Room for the model names in pixels, the same for every chart that shares the columns."""
    lines = [line for label in row_labels(models) for line in label.split("<br>")]
    longest = max(map(len, [*lines, *short_labels(models)]), default=0)
    return min(max(20 + round(6.9 * longest), 46), 150)


def row_labels(models: Sequence[str]) -> list[str]:
    """Model names for the rows; when one is long, all that can are broken once, so that they look alike.

    >>> row_labels(["1.34B", "80B"]), row_labels(["Llama 8.86B", "MPT 7B"])
    (['1.34B', '80B'], ['Llama<br>8.86B', 'MPT 7B'])
    """
    if all(len(model) <= 9 for model in models):
        return [plain(model) for model in models]
    return [plain(model) if len(model) <= 6 else _broken(model) for model in models]


def _broken(model: str) -> str:
    """The name in two lines, split at the mark nearest to its middle."""
    marks = [i + 1 for i, letter in enumerate(model[:-1]) if letter in " -_/"]
    if not marks and len(model) <= 14:
        return plain(model)
    middle = min(marks, key=lambda i: abs(i - len(model) / 2), default=len(model) // 2)
    return f"{plain(model[:middle].strip())}<br>{plain(model[middle:].strip())}"


def short_labels(models: Sequence[str]) -> list[str]:
    """Model names in one line of the same margin: without the words that all begin with, else cut where they are long.

    >>> short_labels(["Llama 8.86B", "Llama 80B"]), short_labels(["Qwen2.5 7B", "Llama 3 70B", "Mixtral 8x22B"])
    (['8.86B', '80B'], ['Qwen2.5 7B', 'Llama… 70B', 'Mix… 8x22B'])
    """
    words = [model.split() for model in models]
    while len(words) > 1 and min(map(len, words)) > 1 and len({name[0] for name in words}) == 1:
        words = [name[1:] for name in words]
    return [plain(_cut(" ".join(name))) for name in words]


def _cut(name: str) -> str:
    """A name that fits in one line: its last word, which is most often the size, is kept where it leaves room."""
    family, _, size = name.rpartition(" ")
    room = _SHORT - len(size) - 1
    if len(name) <= _SHORT or not family or room < _LEAST_OF_FAMILY:
        return shortened(name, _SHORT)
    return f"{shortened(family, room)} {size}"


def column_axis(grid: Grid, *, has_gpus: bool, theme: Theme) -> dict[str, Any]:
    """Node counts across the top, with the GPU counts under them where asked for or where node counts repeat."""

    def tick(nodes: int, gpus: int | None) -> str:
        top = f"<b>{number(nodes)}</b>"
        if gpus is None or not (has_gpus or grid.nodes.count(nodes) > 1):
            return top
        return f'{top}<br><span style="font-size:12px">{devices(gpus, CPU if grid.on_cpu else None)}</span>'

    return {
        "side": "top",
        "range": [-0.5, len(grid.scales) - 0.5],
        "tickvals": list(range(len(grid.scales))),
        "ticktext": [tick(nodes, gpus) for nodes, gpus in zip(grid.nodes, grid.gpus, strict=True)],
        "tickfont": {"size": 13, "color": theme.ink},
        "automargin": False,
        "fixedrange": True,
    }


def row_axis(grid: Grid, theme: Theme) -> dict[str, Any]:
    """Models down the side."""
    return {
        "range": [len(grid.models) - 0.5, -0.5],
        "tickvals": list(range(len(grid.models))),
        "ticktext": [f"<b>{label}</b>" for label in row_labels(grid.models)],
        "ticklabelstandoff": 4,
        "tickfont": {"size": 13, "color": theme.ink},
        "automargin": False,
        "fixedrange": True,
    }
