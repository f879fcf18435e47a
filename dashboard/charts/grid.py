"""Rows and columns that the heatmap and the memory tracks share, so that their cells stand under each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from dashboard.labels import number
from dashboard.theme import Theme

MIN_CELL_WIDTH = 100
HALF = 0.48  # half a cell, less the gap of 4 px


@dataclass(frozen=True)
class Grid:
    """Rows (models, small on top) and columns (node counts) of a cells frame."""

    models: tuple[str, ...]
    nodes: tuple[int, ...]

    @classmethod
    def of(cls, cells: pl.DataFrame) -> Grid:
        """The grid of `cells`: models by parameters (unknown last), then by name."""
        ordered = cells.select("params", "model").unique().sort("params", "model", nulls_last=True)
        return cls(
            tuple(dict.fromkeys(ordered["model"])), tuple(sorted(cells["num_nodes"].drop_nulls().unique().to_list()))
        )

    def at(self, model: str, num_nodes: int) -> tuple[int, int]:
        """Column and row of a cell."""
        return self.nodes.index(num_nodes), self.models.index(model)


def left_margin(models: Sequence[str]) -> int:
    """Room for the model names in pixels, the same for every chart that shares the columns."""
    longest = max((len(line) for model in models for line in row_label(model).split("<br>")), default=0)
    return min(max(16 + round(6.9 * longest), 46), 150)


def row_label(model: str) -> str:
    """A model's name, broken once when it is long.

    >>> row_label("8.86B"), row_label("Llama 8.86B"), row_label("llama-3.1-405b-instruct")
    ('8.86B', 'Llama<br>8.86B', 'llama-3.1-<br>405b-instruct')
    """
    if len(model) <= 9:
        return escape(model, quote=False)
    middle = min(
        (i + 1 for i, letter in enumerate(model[:-1]) if letter in " -_/"),
        key=lambda i: abs(i - len(model) / 2),
        default=len(model) // 2,
    )
    return f"{escape(model[:middle].strip(), quote=False)}<br>{escape(model[middle:].strip(), quote=False)}"


def column_axis(grid: Grid, gpus: dict[int, str], tokens: Theme) -> dict[str, Any]:
    """Node counts across the top, with the GPU counts in `gpus` under them."""

    def tick(nodes: int) -> str:
        below = gpus.get(nodes, "")
        small = f'<br><span style="font-size:12px">{below}</span>' if below else ""
        return f"<b>{number(nodes)}</b>{small}"

    return {
        "side": "top",
        "range": [-0.5, len(grid.nodes) - 0.5],
        "tickvals": list(range(len(grid.nodes))),
        "ticktext": [tick(nodes) for nodes in grid.nodes],
        "tickfont": {"size": 13, "color": tokens.ink},
        "automargin": False,
        "fixedrange": True,
    }


def row_axis(grid: Grid, tokens: Theme) -> dict[str, Any]:
    """Models down the side."""
    return {
        "range": [len(grid.models) - 0.5, -0.5],
        "tickvals": list(range(len(grid.models))),
        "ticktext": [f"<b>{row_label(model)}</b>" for model in grid.models],
        "tickfont": {"size": 13, "color": tokens.ink},
        "automargin": False,
        "fixedrange": True,
    }
