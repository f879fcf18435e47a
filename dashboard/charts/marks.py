"""Marks that charts share, as keyword arguments of plotly: labels, lines, axes, hatching, hovers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweepscope.dashboard.format.theme import Theme


def note(text: str, color: str, *, size: int = 12, page: str | None = None) -> dict[str, Any]:
    """A label without an arrow; on a patch in the colour of the `page`, so that lines do not cross it."""
    patch = {} if page is None else {"bgcolor": page, "borderpad": 1}
    return {"text": text, "showarrow": False, "font": {"size": size, "color": color}, **patch}


def beside(x: float, y: float, gap: int) -> dict[str, Any]:
    """Position of a label `gap` pixels right of a point, or left of it where `gap` is negative."""
    return {"x": x, "y": y, "xanchor": "left" if gap > 0 else "right", "xshift": gap}


def segment(
    start: tuple[float, float], end: tuple[float, float], color: str, *, width: float = 1, **more: Any
) -> dict[str, Any]:
    """A straight line between two points as a shape; `more` are further properties of the shape."""
    (x0, y0), (x1, y1) = start, end
    return {"type": "line", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": {"width": width, "color": color}, **more}


def box(corner: tuple[float, float], opposite: tuple[float, float], **more: Any) -> dict[str, Any]:
    """A rectangle between two corners as a shape, without a frame unless `more` has a `line`."""
    (x0, y0), (x1, y1) = corner, opposite
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": {"width": 0}, **more}


def value_axis(low: float, high: float, title: str, **more: Any) -> dict[str, Any]:
    """An axis of values with grid lines and a title."""
    return {"range": [low, high], "title": {"text": title}, "showgrid": True, **more}


def hatching(theme: Theme) -> dict[str, Any]:
    """Pattern of a bar whose size is inferred and not measured."""
    return {"shape": "/", "fillmode": "overlay", "fgcolor": theme.page, "size": 6, "solidity": 0.35}


def hovering(texts: Sequence[str]) -> dict[str, Any]:
    """One hover text per point, and nothing beside it."""
    return {"hovertext": list(texts), "hovertemplate": "%{hovertext}<extra></extra>"}


def row_axis(labels: Sequence[str], theme: Theme, *, standoff: int = 6) -> dict[str, Any]:
    """An axis with one name per row, from top to bottom."""
    return {
        "range": [max(len(labels), 1) - 0.5, -0.5],
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "tickfont": {"size": 13, "color": theme.ink},
        "ticklabelstandoff": standoff,
    }
