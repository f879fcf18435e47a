"""Lists: lines that lead somewhere, names with values, bars and definitions.

Everything that reaches HTML is escaped here, or by the caller where a docstring states it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from sweepscope.dashboard.charts.memory import NEAR_LIMIT
from sweepscope.dashboard.widgets.basic import link, rich


def items(lines: Sequence[tuple[str, str, str | None]]) -> None:
    """A list of (text, value, address or None), one line each."""
    st.html(_list(lines))


def _list(lines: Sequence[tuple[str, str, str | None]]) -> str:
    entries = "".join(
        f"<li><span>{link(text, url) if url else rich(text)}</span><span>{rich(value)}</span></li>"
        for text, value, url in lines
    )
    return f'<ul class="ss-list">{entries}</ul>'


def cases(entries: Sequence[tuple[str, str, str, str]]) -> None:
    """A list of (title, address, value, remark): the remark is shown whole below it."""
    lines = "".join(
        f"<li><span>{link(title, url)}</span><span>{rich(value)}</span><p>{rich(remark)}</p></li>"
        for title, url, value, remark in entries
    )
    st.html(f'<ul class="ss-list ss-cases">{lines}</ul>')


def folded(
    title: str, qualifier: str, lines: Sequence[tuple[str, str, str | None]], remark: str, *, is_open: bool
) -> None:
    """A list as of `items` with a remark below, behind its heading; a click or Enter on that opens it."""
    st.html(
        f'<details class="ss-fold"{" open" if is_open else ""}>'
        f'<summary><h3 class="ss-section">{rich(title)} <span>{rich(qualifier)}</span></h3></summary>'
        f'{_list(lines)}<p class="ss-note">{rich(remark)}</p></details>'
    )


def rows(pairs: Sequence[tuple[str, str]], *, is_quiet_value: bool = False) -> None:
    """Rows of name and value. Both are HTML: pass them through `rich` or `link`."""
    left, right = ("", "value quiet") if is_quiet_value else ("quiet", "value")
    lines = "".join(
        f'<div><span class="{left}">{name}</span><span class="{right}">{value}</span></div>' for name, value in pairs
    )
    st.html(f'<div class="ss-rows">{lines}</div>')


def facts(items: Sequence[tuple[str, str, str]]) -> None:
    """Name, value and a note on each, in two columns."""
    cells = "".join(
        f'<div><span class="label">{rich(name)}</span><span class="value">{rich(value)}'
        + (f'<span class="note">{rich(remark)}</span>' if remark else "")
        + "</span></div>"
        for name, value, remark in items
    )
    st.html(f'<div class="ss-facts">{cells}</div>')


def tracks(items: Sequence[tuple[str, str, float | None]]) -> None:
    """Name, size and share of a whole as grey bars, above 90 % with "near limit". A share of None draws no bar."""
    lines = []
    for name, size, share in items:
        is_near = share is not None and share > NEAR_LIMIT
        bar = "" if share is None else f'<i style="width:{min(share, 1):.1%}"></i>'
        text = f"<b>{rich(size)}</b> near limit" if is_near else rich(size)
        lines.append(f'<div><span>{rich(name)}</span><span class="track">{bar}</span><span>{text}</span></div>')
    st.html(f'<div class="ss-tracks">{"".join(lines)}</div>')


def definitions(items: Sequence[tuple[str, str, str]], *, height: int) -> None:
    """Terms with type and meaning, in a box that scrolls."""
    entries = "".join(
        f"<dt><code>{html.escape(name)}</code> <span>{html.escape(kind)}</span></dt><dd>{html.escape(meaning)}</dd>"
        for name, kind, meaning in items
    )
    # a box that scrolls has to be reachable by keyboard
    st.html(
        f'<dl class="ss-definitions" style="max-height:{height}px" tabindex="0" aria-label="Columns">{entries}</dl>'
    )


def grid(heads: Sequence[str], lines: Sequence[Sequence[str]], *, label: str, marks: Sequence[str] = ()) -> None:
    """A small table of HTML cells, which may hold links; pass texts through `rich` or `link`.

    Args:
        heads: column names.
        lines: cells of each row.
        label: what the table lists, for a screen reader.
        marks: class of each row (failure, warning, context), which colours its first sign.
    """
    top = "".join(f'<th scope="col">{rich(name)}</th>' for name in heads)
    body = "".join(
        f'<tr class="{html.escape(marks[place]) if place < len(marks) else ""}">'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
        for place, cells in enumerate(lines)
    )
    kind = "ss-grid entries" if marks else "ss-grid"
    st.html(
        f'<div class="ss-scroll" tabindex="0" role="region" aria-label="{html.escape(label)}"><table class="{kind}">'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
