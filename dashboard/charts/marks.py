"""Marks that charts share, as keyword arguments of plotly: labels, rows of names, hatching, hovers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweepscope.dashboard.format.theme import Theme


def note(text: str, color: str, *, size: int = 12, page: str | None = None) -> dict[str, Any]:
    """A label without an arrow; on a patch in the colour of the `page`, so that lines do not cross it."""
    patch = {} if page is None else {"bgcolor": page, "borderpad": 1}
    return {"text": text, "showarrow": False, "font": {"size": size, "color": color}, **patch}


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
