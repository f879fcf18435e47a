"""Charts of the comparison: curves over each other, and two waterfalls subtracted."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.line_labels import LABEL_GAP, name_ends, within
from sweepscope.dashboard.charts.marks import beside, hatching, hovering, note, row_axis, value_axis
from sweepscope.dashboard.format.numbers import number, plain, points
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.compare_curves import Overlay
from sweepscope.dashboard.view_models.compare_losses import Difference
from sweepscope.pipeline.estimate.rows.waterfall import UNEXPLAINED

_HEIGHT = 300
_AXIS_HEIGHT = 54
_ROW_HEIGHT = 28
_MARKED_UP_TO = 40
_LABEL_ROOM = 26


def color_of(place: int, theme: Theme) -> str:
    """Colour of a column; after the six that can be told apart all are grey."""
    return theme.categories[place] if place < len(theme.categories) else theme.axis


def draw_curves(overlay: Overlay, theme: Theme, axis: str = "Step") -> go.Figure:
    """One line per run, named by its letter at the right end."""
    figure = go.Figure()
    ends: dict[str, tuple[float, str]] = {}
    steps: list[int] = []
    factor = overlay.measure.factor
    for letter, place, curve in overlay.curves:
        xs, ys = curve.points["step"].to_list(), curve.points["value"].to_list()
        color = color_of(place, theme)
        steps += [xs[0], xs[-1]]
        figure.add_scatter(
            x=xs,
            y=ys,
            name=letter,
            mode="lines+markers" if len(xs) <= _MARKED_UP_TO else "lines",
            line={"color": color, "width": 1.75},
            marker={"size": 5},
            **hovering(
                [
                    f"<b>{letter}</b> · step {number(step)}<br>{plain(overlay.measure.text(value / factor))}"
                    for step, value in zip(xs, ys, strict=True)
                ]
            ),
        )
        ends.setdefault(letter, (ys[-1], color))
    _name_ends(figure, overlay, ends)
    low, high = (min(steps), max(steps)) if steps else (0, 1)
    room = max((high - low) * 0.02, 0.5)
    figure.update_layout(
        height=_HEIGHT,
        margin={"l": 8, "r": _LABEL_ROOM, "t": 8, "b": 8},
        hoverdistance=24,
        xaxis={"range": [low - room, high + room], "title": {"text": axis}, "tickformat": ",d", "nticks": 8},
        yaxis={"range": [overlay.low, overlay.high], "showgrid": True, "nticks": 6, "tickformat": _format(overlay)},
    )
    return figure


def _name_ends(figure: go.Figure, overlay: Overlay, ends: dict[str, tuple[float, str]]) -> None:
    """Letters at the right edge, moved apart, in the order of the curves' last values."""
    span = overlay.high - overlay.low
    pixels = _HEIGHT - _AXIS_HEIGHT
    heights = within([(y - overlay.low) / span * pixels for y, _ in ends.values()], LABEL_GAP, pixels)
    labels = [
        (overlay.low + height / pixels * span, f"<b>{letter}</b>", color)
        for height, (letter, (_, color)) in zip(heights, ends.items(), strict=True)
    ]
    name_ends(figure, labels, size=13)


def _format(overlay: Overlay) -> str:
    if max(abs(overlay.low), abs(overlay.high)) >= 1e12:
        return ".3~g"
    return f",.{max(0, 1 - math.floor(math.log10(overlay.high - overlay.low)))}f"


def draw_difference(explained: Difference, theme: Theme) -> go.Figure:
    """Bars from zero: to the right what the first run saves, to the left what it pays; the unexplained is hatched."""
    figure, layer = go.Figure(), Layer()
    rows = [(term.label, term.gain, term.term == UNEXPLAINED) for term in explained.terms]
    rows.append(("Together", explained.total, False))
    for position, (_, gain, is_unexplained) in enumerate(rows):
        color = theme.accent if gain >= 0 else theme.warning
        figure.add_bar(
            x=[100 * gain],
            y=[position],
            orientation="h",
            width=0.62,
            hoverinfo="skip",
            marker={
                "color": color,
                "line": {"width": 0},
                **({"pattern": hatching(theme)} if is_unexplained else {}),
            },
        )
        is_last = position == len(rows) - 1
        text = f"<b>{points(gain)}</b>" if is_last else points(gain)
        label = note(text, theme.ink if is_last else theme.soft, page=theme.page)
        layer.add_annotation(**beside(100 * gain, position, 6 if gain >= 0 else -6), **label)
    layer.add_shape(
        type="line", x0=0, x1=0, y0=-0.5, y1=len(rows) - 0.5, line={"width": 1, "color": theme.axis}, layer="below"
    )
    layer.lay_on(figure)
    reach = [100 * gain for _, gain, _ in rows]
    room = max(max(reach) - min(reach), 1.0) * 0.16
    figure.update_layout(
        height=_ROW_HEIGHT * len(rows) + _AXIS_HEIGHT,
        xaxis=value_axis(min(0.0, *reach) - room, max(0.0, *reach) + room, "Points saved (right) or paid (left)"),
        yaxis=row_axis([plain(label) for label, _, _ in rows], theme),
    )
    return figure
