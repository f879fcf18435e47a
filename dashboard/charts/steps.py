"""A run's step curve: warm-up shaded, steady median as a line, what is off the axis named."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from sweepscope.dashboard.charts.marks import beside, box, hovering, note
from sweepscope.dashboard.format.numbers import plain
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.curves import Curve, beyond_in_words

_MARKED_UP_TO = 60  # points; beyond, dots merge into a band
_HEIGHT = 262
_MANY_DIGITS = 1e12


def draw(curve: Curve, theme: Theme, axis: str = "Step") -> go.Figure:
    """One line in the measure's shown unit over the framework's own step numbers, which `axis` names."""
    figure = go.Figure()
    steps, values = curve.points["step"].to_list(), curve.points["value"].to_list()
    first, last = _span(curve)
    room = max((last - first) * 0.02, 0.5)
    if _shows_warmup(curve):
        corners = (first - room, 0), (curve.warmup_until or 0, 1)
        figure.add_shape(**box(*corners, yref="paper", fillcolor=theme.cell, layer="below"))
    _draw_notes(figure, curve, first - room, theme)
    is_marked = len(steps) <= _MARKED_UP_TO
    factor = curve.measure.factor
    figure.add_scatter(
        x=steps,
        y=values,
        mode="lines+markers" if is_marked else "lines",
        line={"color": theme.categories[0], "width": 2 if is_marked else 1.5},
        marker={"size": 7},
        **hovering(
            [
                f"<b>step {step:,}</b><br>{plain(curve.measure.text(value / factor))}"
                + (f"<br>median of {count:,} steps" if count > 1 else "")
                for step, value, count in zip(steps, values, curve.points["steps_in_row"], strict=True)
            ]
        ),
    )
    if curve.median is not None:
        _draw_median(figure, curve, last + room, theme)
    figure.update_layout(
        height=_HEIGHT,
        margin={"l": 8, "r": 74 if curve.median is not None else 8, "t": 8, "b": 8},
        xaxis={"range": [first - room, last + room], "title": {"text": axis}, "tickformat": ",d", **_ticks(curve)},
        yaxis={"range": [curve.low, curve.high], "showgrid": True, "nticks": 6, "tickformat": _tick_format(curve)},
    )
    return figure


def _tick_format(curve: Curve) -> str:
    """As few decimals as keep adjacent ticks different, the same on each; exponents in place of very many digits."""
    if max(abs(curve.low), abs(curve.high)) >= _MANY_DIGITS:
        return ".3~g"
    return f",.{max(0, 1 - math.floor(math.log10(curve.high - curve.low)))}f"


def _shows_warmup(curve: Curve) -> bool:
    """Shading of the steps that the median leaves out; of a long run it would be thinner than its own label."""
    first, last = _span(curve)
    if not curve.measure.has_median or curve.warmup_until is None:
        return False
    return curve.warmup_until - first >= 0.02 * (last - first)


def _span(curve: Curve) -> tuple[int, int]:
    steps = [*curve.points["step"], *(point.step for point in curve.beyond)]
    return (min(steps), max(steps)) if steps else (0, 1)


def _ticks(curve: Curve) -> dict[str, object]:
    first, last = _span(curve)
    # Few steps: every one gets its tick, else plotly writes 1.5 and 2.5.
    return {"tickmode": "linear", "tick0": first, "dtick": 1} if last - first <= 20 else {"nticks": 8}


def _draw_notes(figure: go.Figure, curve: Curve, left: float, theme: Theme) -> None:
    lines = ["warm-up, not counted"] if _shows_warmup(curve) else []
    beyond = beyond_in_words(curve)
    if beyond:
        lines.append(f"<span style='color:{theme.soft}'>↑ {plain(beyond)}</span>")
    if lines:
        text = note("<br>".join(lines), theme.mute)
        figure.add_annotation(**beside(left, 1, 4), yref="paper", yanchor="top", align="left", **text)


def _draw_median(figure: go.Figure, curve: Curve, right: float, theme: Theme) -> None:
    value = curve.median or 0
    dotted = {"color": theme.axis, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", xref="paper", x0=0, x1=1, y0=value, y1=value, layer="below", line=dotted)
    text = note(f"median<br>{plain(curve.measure.text(value / curve.measure.factor))}", theme.soft)
    figure.add_annotation(**beside(right, value, 4), align="left", **text)
