"""Figures on a screen as narrow as a phone's: labels beside the plot elsewhere are above it here.

Rows of names take more than half of such a screen, so that marks and their figures were cut off.
"""

from __future__ import annotations

import re

import plotly.graph_objects as go

WIDEST = {"narrow": 640, "medium": 1150}
"""Pixels up to which a window counts as narrow (a phone's), or as medium; any other is wide."""
_LONG_LABEL = 13  # letters; shorter ones leave the plot room enough
_ROW = 44
_LINE = 16
_AXIS = 54
_BAR = 0.36  # of a row
_SQUARE = 340


def fit(figure: go.Figure, page: str) -> go.Figure:
    """The figure, changed in position: long row labels above their rows, square plots without blank space around.

    `page` is the page's colour, which keeps lines of the plot out of those labels.
    """
    labels = _row_labels(figure)
    if labels and max(len(line) for label in labels for line in _lines(label)) > _LONG_LABEL:
        _stack(figure, labels, page)
    elif figure.layout.yaxis.scaleanchor:
        figure.update_layout(height=_SQUARE)
    return figure


def _row_labels(figure: go.Figure) -> list[str]:
    """Labels of a chart of rows; none of a grid, whose columns depend on the labels of its rows."""
    is_grid = any(isinstance(trace, go.Heatmap) for trace in figure.data)
    return [] if is_grid else list(figure.layout.yaxis.ticktext or [])


def _lines(label: str) -> list[str]:
    return [re.sub(r"<[^>]*>", "", line).strip() for line in label.split("<br>")]


def _stack(figure: go.Figure, labels: list[str], page: str) -> None:
    lines = max(len(_lines(label)) for label in labels)
    row = _ROW + _LINE * (lines - 1)
    axis = figure.layout.yaxis
    bar = max(_BAR * row / 2, 8) + 1  # what is below the label, and a pixel between them
    for position, label in zip(axis.tickvals, labels, strict=True):
        above = _LINE * len(_lines(label)) / 2 + bar
        figure.add_annotation(
            x=0,
            xref="paper",
            xanchor="left",
            y=position,
            yshift=above,
            text=label,
            align="left",
            showarrow=False,
            font=axis.tickfont.to_plotly_json(),
            bgcolor=page,
            borderpad=0,
        )
    for trace in figure.data:
        if isinstance(trace, go.Bar):
            trace.width = _BAR
    # The first row's label needs room that its mark does not.
    begin, end = axis.range
    step = 1 if end > begin else -1
    room = 0.1 + 0.35 * (lines - 1)
    figure.update_layout(
        height=round(row * (len(labels) + room)) + (_AXIS if figure.layout.xaxis.visible is not False else 8),
        yaxis={"showticklabels": False, "range": [begin, end + step * room]},
    )
