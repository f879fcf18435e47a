"""A table of runs side by side: one row per fact, one column per run; everything escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from sweepscope.dashboard.view_models.compare import Line
from sweepscope.dashboard.widgets.basic import rich

_ABSENT = '<span class="absent" title="not stated">–<span class="ss-hidden"> not stated</span></span>'


def draw(heads: Sequence[str], groups: Mapping[str, Sequence[Line]], *, label: str, colors: Sequence[str]) -> None:
    """One table; `heads` are HTML, one per column, and `colors` the strokes over them. Groups without lines are left
    out; a title "" draws no row of its own. `label` says what the table is, for those who cannot see it.
    """
    cells = "".join(
        f'<th scope="col" style="border-top-color:{html.escape(color)}">{head}</th>'
        for head, color in zip(heads, colors, strict=True)
    )
    body = "".join(_group(title, lines, len(heads)) for title, lines in groups.items() if lines)
    st.html(
        f'<div class="ss-beside" tabindex="0" role="region" aria-label="{html.escape(label)}"><table>'
        f'<thead><tr><th scope="col"><span class="ss-hidden">Fact</span></th>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _group(title: str, lines: Sequence[Line], columns: int) -> str:
    head = f'<tr class="group"><th scope="colgroup" colspan="{columns + 1}">{rich(title)}</th></tr>' if title else ""
    return head + "".join(_row(line) for line in lines)


def _row(line: Line) -> str:
    cells = "".join(
        f'<td class="{_kind(line, place)}">{_ABSENT if text is None else rich(text)}</td>'
        for place, text in enumerate(line.texts)
    )
    return f'<tr><th scope="row">{rich(line.label)}</th>{cells}</tr>'


def _kind(line: Line, place: int) -> str:
    """Where columns differ, what is as in the first of them stands back."""
    if not line.differs:
        return "alike"
    return "same" if place and line.texts[place] == line.texts[0] else "other"
