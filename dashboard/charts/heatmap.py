"""The grid of models by node counts: colour and number per cell, hatch and word where there is no result.

Cells are heatmap pixels or bars (heatmaps have no hatch); their text is annotations, because each needs a colour of
its own. An invisible scatter on top takes hover and clicks, since plotly heatmap cells cannot be selected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.grid import HALF, Grid, column_axis, left_margin, row_axis
from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.marks import box, hovering, note
from sweepscope.dashboard.format import metrics
from sweepscope.dashboard.format.metrics import Metric
from sweepscope.dashboard.format.numbers import NBSP, plain
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.format.theme import MFU_SCALE, Theme, scale_color, text_on

HEAD_HEIGHT = 46
COLUMNS_BESIDE_PANEL = 7  # more would make cells narrower than 105 px at a window of 1440


def draw(
    cells: pl.DataFrame,
    metric: Metric,
    theme: Theme,
    *,
    hovers: Sequence[str],
    selected: tuple[str, str] | None = None,
    has_layouts: bool = True,
    row_height: int | None = None,
    estimates: Mapping[tuple[str, str], float] | None = None,
    is_narrow: bool = False,
) -> go.Figure:
    """The heatmap of `cells` (one row per cell, with outcomes), with one hover text per cell.

    A point's `customdata` is [model, scale]. `has_layouts` adds the winner's layout and the GPU counts. `estimates` are
    values of cells without a result, by model and scale: in italics after a tilde, uncoloured, below what happened.
    Where it `is_narrow`, cells without layouts show figures without unit and symbols without word; the legend has both.
    """
    grid = Grid.of(cells)
    row_height = row_height or min(max(360 // max(len(grid.models), 1), 66), 86)
    shares = metrics.paint_share(cells, metric)
    figure, layer = go.Figure(), Layer()
    _add_backgrounds(figure, layer, cells, grid=grid, shares=shares, metric=metric, theme=theme)
    for cell, share in zip(cells.iter_rows(named=True), shares, strict=True):
        column, row = grid.at(cell["model"], cell["scale"])
        text = _cell_text(cell, share, metric, theme, has_layouts)
        if is_narrow and not has_layouts:
            text["text"] = _shortened(cell, metric)
        estimate = (estimates or {}).get((cell["model"], cell["scale"]))
        if estimate is not None and cell[metric.column] is None:
            text["text"] += f'<br><i><span style="font-size:13px">~{metric.text(estimate)}</span></i>'
        layer.add_annotation(x=column, y=row, showarrow=False, **text)
    _add_selection_layer(figure, cells, grid, hovers)
    if selected is not None and selected[0] in grid.models and selected[1] in grid.scales:
        column, row = grid.at(*selected)
        _frame(layer, column, row, {"color": theme.ink, "width": 3})
    corner = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "bottom"}
    layer.add_annotation(**corner, xshift=-8, yshift=4, **note("nodes", theme.mute))
    layer.lay_on(figure)
    head = HEAD_HEIGHT if has_layouts or len(set(grid.nodes)) < len(grid.nodes) else 26
    figure.update_layout(
        height=head + row_height * len(grid.models),
        margin={"l": left_margin(grid.models), "r": 0, "t": head, "b": 0},
        hoverdistance=-1,
        hovermode="closest",
        clickmode="event+select",
        barmode="overlay",
        xaxis=column_axis(grid, has_gpus=has_layouts, theme=theme),
        yaxis=row_axis(grid, theme),
    )
    return figure


def _add_backgrounds(
    figure: go.Figure, layer: Layer, cells: pl.DataFrame, *, grid: Grid, shares: pl.Series, metric: Metric, theme: Theme
) -> None:
    pixels: list[list[float | None]] = [[None] * len(grid.scales) for _ in grid.models]
    plain: list[tuple[int, int, str]] = []
    for cell, share in zip(cells.iter_rows(named=True), shares, strict=True):
        column, row = grid.at(cell["model"], cell["scale"])
        if share is not None and metric.paint != "share":
            pixels[row][column] = share
        elif cell["cell_state"] in ("not_run", "planned"):
            _frame(layer, column, row, {"color": theme.axis, "width": 1, "dash": "dot"})
        else:
            hatch = "" if share is not None else CELL_STATE[cell["cell_state"]].hatch
            plain.append((column, row, hatch))
            if share is not None and metric.paint == "share":
                left = column - HALF
                top, bottom = (left, row + HALF - 0.12), (left + 2 * HALF * share, row + HALF)
                layer.add_shape(**box(top, bottom, layer="above", fillcolor=theme.hatch))
    figure.add_heatmap(
        z=pixels,
        zmin=0,
        zmax=1,
        xgap=4,
        ygap=4,
        showscale=False,
        hoverinfo="skip",
        colorscale=[[i / (len(MFU_SCALE) - 1), color] for i, color in enumerate(MFU_SCALE)],
    )
    figure.add_bar(
        x=[column for column, _, _ in plain],
        y=[2 * HALF] * len(plain),
        base=[row - HALF for _, row, _ in plain],
        width=2 * HALF,
        marker={
            "color": theme.cell,
            "line": {"width": 0},
            "pattern": {
                "shape": [hatch for _, _, hatch in plain],
                "fgcolor": theme.hatch,
                "bgcolor": theme.cell,
                "size": 9,
                "solidity": 0.16,
                "fillmode": "replace",
            },
        },
        unselected={"marker": {"opacity": 1}},
        hoverinfo="skip",
    )


def _frame(layer: Layer, column: int, row: int, line: dict[str, Any]) -> None:
    layer.add_shape(**box((column - HALF, row - HALF), (column + HALF, row + HALF), layer="above", line=line))


def _cell_text(
    cell: dict[str, Any], share: float | None, metric: Metric, theme: Theme, has_layouts: bool
) -> dict[str, Any]:
    """Text, font and background of a cell: value over layout, or state over reason."""
    value = cell[metric.column]
    if value is None:
        mark = CELL_STATE[cell["cell_state"]]
        first = "not logged" if cell["cell_state"] == "measured" else mark.text
        second = cell["layout"] if cell["cell_state"] == "measured" else cell["short_reason"]
        return {
            "text": f"<b>{first}</b>{_small(second) if has_layouts else ''}",
            "font": {"size": 13, "color": theme.soft},
            "bgcolor": theme.cell if mark.hatch else "rgba(0,0,0,0)",
            "borderpad": 2,
        }
    is_colored = metric.paint != "share" and share is not None
    color = text_on(scale_color(share)) if is_colored and share is not None else theme.ink
    size = 17 if has_layouts else 14
    return {
        "text": f'<b><span style="font-size:{size}px">{metric.text(value)}</span></b>'
        + (_small(cell["layout"]) if has_layouts else ""),
        "font": {"size": 13, "color": color},
    }


def _shortened(cell: dict[str, Any], metric: Metric) -> str:
    value = cell[metric.column]
    if value is None:
        return "?" if cell["cell_state"] == "measured" else f"<b>{CELL_STATE[cell['cell_state']].symbol}</b>"
    return f"<b>{metric.text(value).split(NBSP)[0]}</b>"


def _small(text: str | None) -> str:
    """The second tier of a cell; a layout breaks once, between dimensions and batch."""
    if not text:
        return ""
    lines = plain(text).replace(" · ", "<br>", 1)
    return f'<br><span style="font-size:11.5px">{lines}</span>'


def _add_selection_layer(figure: go.Figure, cells: pl.DataFrame, grid: Grid, hovers: Sequence[str]) -> None:
    keys = cells.select("model", "scale").rows()
    positions = [grid.at(*key) for key in keys]
    # hoverdistance=-1 gives every pixel to the nearest cell, so the marker's size does not matter.
    figure.add_scatter(
        x=[column for column, _ in positions],
        y=[row for _, row in positions],
        mode="markers",
        customdata=[list(key) for key in keys],
        **hovering(hovers),
        marker={"symbol": "square", "size": 60, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
    )
