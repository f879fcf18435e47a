"""Peak memory of each cell's winner: one track per cell, whose length is the card's usable memory."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.grid import HALF, Grid, left_margin, short_labels
from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.marks import box
from sweepscope.dashboard.format.numbers import gib
from sweepscope.dashboard.format.theme import Theme
from sweepscope.schemas.thresholds import MEM_NEAR_LIMIT

NEAR_LIMIT = MEM_NEAR_LIMIT
_ROW_HEIGHT = 27


def draw(cells: pl.DataFrame, theme: Theme) -> go.Figure:
    """Tracks under the heatmap's columns. Needs `mem_peak_bytes`, `memory_bytes`, `model`, `params`, `scale`."""
    grid = Grid.of(cells)
    figure, layer = go.Figure(), Layer()
    columns, rows, texts, colors = [], [], [], []
    for cell in cells.iter_rows(named=True):
        column, row = grid.at(cell["model"], cell["scale"])
        share = _share(cell)
        _bar(layer, column, row, 1.0, theme.cell)
        if share is not None:
            _bar(layer, column, row, min(share, 1.0), theme.hatch)
        columns.append(column - HALF + 0.02)  # the room that a label has on its left
        rows.append(row)
        texts.append(_text(cell, share))
        colors.append(theme.soft if cell["mem_peak_bytes"] is None else theme.ink)
    layer.lay_on(figure)
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="text",
        text=texts,
        textposition="middle right",
        textfont={"size": 12, "color": colors},
        hoverinfo="skip",
    )
    figure.update_layout(
        height=_ROW_HEIGHT * len(grid.models),
        margin={"l": left_margin(grid.models), "r": 0, "t": 0, "b": 0},
        xaxis={"range": [-0.5, len(grid.scales) - 0.5], "visible": False},
        yaxis={
            "range": [len(grid.models) - 0.5, -0.5],
            "tickvals": list(range(len(grid.models))),
            "ticktext": short_labels(grid.models),
            "tickfont": {"size": 13, "color": theme.ink},
            "ticklabelstandoff": 4,
            "automargin": False,
        },
    )
    return figure


def _share(cell: dict[str, Any]) -> float | None:
    peak, usable = cell["mem_peak_bytes"], cell["memory_bytes"]
    return peak / usable if peak is not None and usable else None


def _text(cell: dict[str, Any], share: float | None) -> str:
    if cell["run_id"] is None:
        return "no result"
    if cell["mem_peak_bytes"] is None:
        return "not logged"
    size = gib(cell["mem_peak_bytes"], 0)
    return f"<b>{size}</b> near limit" if share is not None and share > NEAR_LIMIT else size


def _bar(layer: Layer, column: int, row: int, share: float, color: str) -> None:
    left = column - HALF
    layer.add_shape(**box((left, row - 0.3), (left + 2 * HALF * share, row + 0.3), layer="below", fillcolor=color))
