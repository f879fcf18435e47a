"""Names of curves at the right edge of their plot, moved apart where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from sweepscope.dashboard.charts.marks import note

LABEL_GAP = 17
"""Pixels between the baselines of two labels."""


def name_ends(figure: go.Figure, labels: Sequence[tuple[float, str, str]], *, size: int = 12) -> None:
    """Writes labels at the right edge; each is its height on the axis, its text and its colour."""
    for y, text, color in labels:
        figure.add_annotation(
            x=1, xref="paper", xanchor="left", xshift=4, y=y, align="left", **note(text, color, size=size)
        )


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """`positions` moved apart until adjacent ones are at least `gap` from each other, keeping their order and centre.

    >>> spread([1.0, 1.0, 5.0], 1.0)
    [0.5, 1.5, 5.0]
    """
    groups: list[tuple[float, int]] = []  # (centre, members), from low to high
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    for i in order:
        centre, members = positions[i], 1
        while groups and groups[-1][0] + groups[-1][1] * gap / 2 > centre - members * gap / 2:
            other, size = groups.pop()
            centre, members = (other * size + centre * members) / (size + members), size + members
        groups.append((centre, members))
    moved = [centre + (k - (members - 1) / 2) * gap for centre, members in groups for k in range(members)]
    out = [0.0] * len(positions)
    for i, value in zip(order, moved, strict=True):
        out[i] = value
    return out


def within(positions: Sequence[float], gap: float, top: float) -> list[float]:
    """`spread`, with all of it moved between 0 and `top`: a label outside the axis would not be drawn.

    >>> within([0.0, 0.1, 9.0], 1.0, 10.0), within([9.9, 10.0, 10.0], 1.0, 10.0)
    ([0.5, 1.5, 9.0], [7.5, 8.5, 9.5])
    """
    heights = spread(positions, gap)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    for count, i in enumerate(order):
        heights[i] = max(heights[i], gap * (count + 0.5))
    for count, i in enumerate(reversed(order)):
        heights[i] = min(heights[i], top - gap * (count + 0.5))
    return heights
