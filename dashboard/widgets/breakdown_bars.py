"""Breakdowns as HTML: names, bars that begin where the one before ended, and figures. Faster than a chart to redraw
while a slider moves, and its text is text: it can be read aloud, selected, checked for contrast.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import streamlit as st

from sweepscope.dashboard.view_models.explorer_layout import Part
from sweepscope.dashboard.widgets.basic import rich


def fall(
    parts: Sequence[Part], value: Callable[[Part], str], *, limit: float | None = None, limit_name: str = ""
) -> None:
    """One row per part; `limit` is a line through all bars, named under them."""
    top = max(sum(part.size for part in parts if part.kind != "total"), limit or 0.0) * 1.005 or 1.0
    share = 100 * (limit or 0.0) / top
    line = "" if limit is None else f'<b style="left:{share:.2f}%"></b>'
    rows = "".join(
        _row(part.kind, part.name, f"{_bar(part.before / top, part.size / top)}{line}", value(part)) for part in parts
    )
    foot = (
        "" if limit is None else _row("foot", "", f'<em style="right:{100 - share:.2f}%">{rich(limit_name)}</em>', "")
    )
    st.html(f'<div class="ss-fall">{rows}{foot}</div>')


def _bar(start: float, length: float) -> str:
    return f'<i style="left:{100 * start:.2f}%;width:{100 * length:.2f}%"></i>'


def _row(kind: str, name: str, track: str, value: str) -> str:
    return (
        f'<div class="{html.escape(kind)}"><span>{rich(name)}</span><span class="track">{track}</span>'
        f"<span>{rich(value)}</span></div>"
    )
