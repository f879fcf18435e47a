"""Colours, the MFU scale and the plotly template, for both themes.

Every colour of the dashboard is defined here; charts and style sheets take a `Theme` and never name a hex value.
Contrast was chosen against each theme's page background: text >= 4.5, marks >= 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go

FONT = '"Source Sans", sans-serif'

# Lightness rises linearly, so the scale reads in grey and under colour-vision deficiency.
MFU_SCALE = (
    *("#222B5B", "#253E6F", "#265184", "#226694", "#1E7C9D", "#2992A4"),
    *("#2FA9A7", "#4DBEA3", "#7CD196", "#B6DE84", "#F0E67A"),
)
MFU_SCALE_TOP = 0.5


@dataclass(frozen=True)
class Theme:
    """Colours of one mode. Text colours: ink, soft, mute, accent and the statuses; the others are for marks."""

    name: str
    page: str
    surface: str
    sidebar: str
    ink: str
    soft: str
    mute: str
    axis: str
    hatch: str
    rule: str
    grid: str
    cell: str
    accent: str
    completed: str
    warning: str
    failed: str
    hang: str
    infra: str
    categories: tuple[str, ...]


LIGHT = Theme(
    name="light",
    page="#FFFFFF",
    surface="#F6F7F8",
    sidebar="#F6F7F8",
    ink="#1B2129",
    soft="#4B5563",
    mute="#5B6572",
    axis="#8A94A0",
    hatch="#B4BCC6",
    rule="#DFE3E8",
    grid="#ECEFF2",
    cell="#F1F3F5",
    accent="#2456B8",
    completed="#1B7F4B",
    warning="#9A5B00",
    failed="#B3261E",
    hang="#7A3FA0",
    infra="#3F6B8C",
    categories=("#1B2F94", "#7A3500", "#0B7F78", "#9D58B4", "#B01552", "#6B7A00"),
)

DARK = Theme(
    name="dark",
    page="#12161B",
    surface="#1A1F26",
    sidebar="#0E1216",
    ink="#E6EAEF",
    soft="#AAB4BF",
    mute="#9AA5B1",
    axis="#6B7684",
    hatch="#46515D",
    rule="#2C343D",
    grid="#232A32",
    cell="#1A1F26",
    accent="#8FB4F5",
    completed="#5CC48F",
    warning="#E8A94A",
    failed="#F28B82",
    hang="#CFA0EA",
    infra="#8FB8D6",
    categories=("#6C8DF5", "#F08A4B", "#7FE3B0", "#B79AD6", "#C27674", "#DCE86A"),
)

# First four plotly symbols with nearly equal area; the order goes with the colours'.
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "star")


LIGHT_HIGH = replace(
    LIGHT,
    ink="#000000",
    soft="#1B2129",
    mute="#333A44",
    axis="#4B5563",
    hatch="#8A94A0",
    rule="#6B7684",
    grid="#B4BCC6",
    accent="#0B3A8F",
    completed="#0B5A30",
    warning="#6B3E00",
    failed="#8E1B14",
    hang="#5A2780",
    infra="#24506F",
)
DARK_HIGH = replace(
    DARK,
    ink="#FFFFFF",
    soft="#F0F3F6",
    mute="#D0D7DE",
    axis="#AAB4BF",
    hatch="#5B6572",
    rule="#8A94A0",
    grid="#46515D",
    accent="#B9D2FF",
    completed="#8FE0B4",
    warning="#FFC980",
    failed="#FFB3AD",
    hang="#E3C4F5",
    infra="#B5D8F0",
)


def named_theme(name: str | None, *, is_high: bool = False) -> Theme:
    """The theme called `name` ("dark", anything else is light), in high contrast where that is asked for."""
    if name == "dark":
        return DARK_HIGH if is_high else DARK
    return LIGHT_HIGH if is_high else LIGHT


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def luminance(color: str) -> float:
    """Relative luminance of a #RRGGBB colour (WCAG 2.2)."""

    def linear(channel: int) -> float:
        value = channel / 255
        return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)

    red, green, blue = (linear(channel) for channel in _rgb(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2).

    >>> round(contrast("#FFFFFF", "#000000"))
    21
    """
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def text_on(background: str) -> str:
    """Pure white or black, whichever reads better; off-black would fall below 4.5 in the middle of the scale.

    >>> text_on("#222B5B"), text_on("#F0E67A")
    ('#FFFFFF', '#000000')
    """
    return "#FFFFFF" if contrast(background, "#FFFFFF") >= contrast(background, "#000000") else "#000000"


def scale_color(share: float) -> str:
    """Colour of the MFU scale at `share` of its length; outside 0-1 it is clipped.

    >>> scale_color(0), scale_color(2)
    ('#222B5B', '#F0E67A')
    """
    position = min(max(share, 0.0), 1.0) * (len(MFU_SCALE) - 1)
    index = min(int(position), len(MFU_SCALE) - 2)
    low, high = _rgb(MFU_SCALE[index]), _rgb(MFU_SCALE[index + 1])
    mixed = (round(a + (b - a) * (position - index)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def category_colors(names: Sequence[str], theme: Theme) -> dict[str, str]:
    """Colour per name in the given order; after six all are grey, so that no colour has two meanings."""
    colors = theme.categories
    return {name: colors[i] if i < len(colors) else theme.axis for i, name in enumerate(names)}


def template(theme: Theme) -> go.layout.Template:
    """Plotly template: transparent, no frame, no legend, grid on the value axis only (set per chart)."""
    axis = {
        "showgrid": False,
        "gridcolor": theme.grid,
        "gridwidth": 1,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "tickfont": {"size": 12, "color": theme.mute},
        "automargin": True,
        "fixedrange": True,
        "title": {"font": {"size": 13, "color": theme.soft}, "standoff": 10},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": theme.ink},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(theme.categories),
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {
                "bgcolor": theme.surface,
                "bordercolor": theme.rule,
                "font": {"family": FONT, "size": 13, "color": theme.ink},
                "align": "left",
            },
            "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
            "showlegend": False,
            "dragmode": False,
        }
    )
