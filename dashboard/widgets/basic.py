"""Pieces that every page is built from: head, badges, figures, notes, links, charts, SQL.

Sentences come from `text/`, with `**bold**` around the fact; everything that reaches HTML is escaped here, because
names and log lines are other people's text.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from sweepscope.dashboard.charts import narrow
from sweepscope.dashboard.format.emphasis import BOLD, without_marks
from sweepscope.dashboard.format.file_names import picture_name
from sweepscope.dashboard.format.numbers import plain
from sweepscope.dashboard.format.style_sheet import colors
from sweepscope.dashboard.format.symbols import Mark
from sweepscope.dashboard.format.theme import Theme, named_theme, template
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.selection.filters import NARROWING, chips, parse_query
from sweepscope.dashboard.widgets import urls
from sweepscope.dashboard.widgets.charts_last import last

# plotly takes a pandas that another thread is importing for one that is there, and fails: no page draws before this
import_module("pandas")

PICTURE_FORMATS = {"png": "PNG", "svg": "SVG"}
HOW_TO_READ = "How to read this page, and what it hides"
_TITLE = "page_title"  # key of the session's state: names the pictures of its charts
_HEAD = "page_head"  # key of the session's state
_CAPTION = "page_caption"  # key of the session's state: what is printed in them
_CAPTION_HEIGHT = 16  # px
_CAPTION_CHARS = 110  # what fits below a chart of half a page
_NARROW_CHARS = 60  # and on a phone
_UNSTATED_HEIGHT = 450  # px: plotly's own
_HARDLY_CUT = 24  # px beyond the edge that hide nothing of interest
HIGH_CONTRAST = "high_contrast"  # key of the session's state, and of the switch in the sidebar
WINDOW_WIDTH = "window_width"  # key of the session's state that it is kept under


def current_theme() -> Theme:
    """The theme that the reader's system prefers, in high contrast where the system or the reader asks for it."""
    return named_theme(st.context.theme.type, is_high=bool(st.session_state.get(HIGH_CONTRAST)))


def window_width() -> str:
    """Whether the reader's window is "narrow" as a phone's, "medium" or "wide", as last reported by the browser."""
    return str(st.session_state.get(WINDOW_WIDTH, "wide"))


def is_narrow() -> bool:
    """Whether the reader's window is as narrow as a phone's."""
    return window_width() == "narrow"


def style(current: Theme) -> None:
    """Gives the document's style sheet the colours of a theme."""
    st.html(f"<style>{colors(current)}</style>")


def rich(text: str) -> str:
    """Escapes `text` and turns `**fact**` into bold.

    >>> rich("**36 %** of <runs>")
    '<b>36 %</b> of &lt;runs&gt;'
    >>> rich("**First sign:** *** STEP 5.0 CANCELLED ***")
    '<b>First sign:</b> *** STEP 5.0 CANCELLED ***'
    """
    return BOLD.sub(r"<b>\1</b>", html.escape(text, quote=False))


def _whole_names(text: str) -> str:
    """Keeps short names with a hyphen (Llama-3.2-1B) on one line."""
    return re.sub(r"(?<!\S)(?=\S*\d)(\w[\w.]*-[\w.-]{1,24})", r'<span class="ss-name">\1</span>', text)


def badge(origin: str) -> str:
    """Origin badge as HTML: measured solid, published dashed, simulated dotted, estimated italic."""
    return f'<span class="ss-badge {html.escape(origin)}">{html.escape(origin)}</span>'


def head(
    title: str, answer: str, meta: str = "", origins: Sequence[str] = (), links: Sequence[tuple[str, str]] = ()
) -> None:
    """Title, the answer in one sentence, and the line on origin, n and conditions; `links` are (text, url) after it."""
    st.session_state[_TITLE] = title
    on_screen().update(title=title, answer=answer, meta=meta, origins=tuple(origins))
    st.session_state[_CAPTION] = ", ".join(part for part in (" and ".join(origins), meta) if part)
    st.title(title, anchor=False)
    badges = "".join(badge(origin) for origin in origins)
    after = ", ".join(link(text, url) for text, url in links)
    after = f"{'' if meta.endswith('.') else ' ·'} Also here: {after}" if after else ""
    second = f'<p class="ss-meta">{badges}{rich(meta)}{after}</p>' if meta or badges else ""
    st.html(f'<p class="ss-answer">{_whole_names(rich(answer))}</p>{second}')


def on_screen() -> dict[str, Any]:
    """Title, answer, meta and origins of the head that was drawn last, for what is written when a reader asks.

    One dictionary a session, which `head` keeps current: who takes it before the head is drawn has the head, too.
    """
    shown: dict[str, Any] = st.session_state.setdefault(_HEAD, {})
    return shown


def section(title: str, qualifier: str = "") -> None:
    """Heading of a chart or list, with a grey qualifier after it."""
    st.html(f'<h2 class="ss-section">{rich(title)} <span>{rich(qualifier)}</span></h2>')


def note(text: str) -> None:
    """Small print below a chart."""
    st.html(f'<p class="ss-note">{rich(text)}</p>')


def notes(paragraphs: Iterable[str]) -> None:
    """Paragraphs of small print."""
    for text in paragraphs:
        note(text)


def how_to_read(paragraphs: Iterable[str]) -> None:
    """What a page's charts mean and what they hide, folded at its end: read once, not on each visit."""
    with st.expander(HOW_TO_READ, icon=":material/help:"):
        notes(paragraphs)


def swatches(marks: Sequence[Mark], theme: Theme) -> None:
    """A legend of bars: each mark's colour, hatched as its bar is, with its symbol and word."""
    st.html(f'<div class="ss-legend ss-swatches">{"".join(_swatch(mark, theme) for mark in marks)}</div>')


def _swatch(mark: Mark, theme: Theme) -> str:
    color, page = getattr(theme, mark.color), theme.page
    lines = f"repeating-linear-gradient(45deg,{color} 0 3px,{page} 3px 5px)" if mark.hatch else color
    return f'<span><i style="background:{lines}"></i>{rich(mark.text)}</span>'


def figures(items: Sequence[tuple[str, str, str]]) -> None:
    """Plain figures in one row, each with its label above and a note below: (label, value, note)."""
    cells = "".join(
        f'<div><div class="label">{rich(label)}</div><div class="value">{rich(value)}</div>'
        f'<div class="note">{rich(remark)}</div></div>'
        for label, value, remark in items
    )
    st.html(f'<div class="ss-figures">{cells}</div>')


def link(text: str, url: str) -> str:
    """A link inside the app as HTML, for `rows`."""
    return f'<a href="{html.escape(url)}" target="_self">{rich(text)}</a>'


def outside_link(text: str, url: str) -> str:
    """A link to a source elsewhere as HTML, for `rows`; anything but http(s) stays text."""
    if not url.startswith(("https://", "http://")):
        return rich(f"{text} ({url})")
    return f'<a href="{html.escape(url)}" target="_blank" rel="noopener noreferrer">{rich(text)}</a>'


_DASHES = {"solid": "solid", "dash": "dashed", "dot": "dotted"}


def line_legend(items: Sequence[tuple[str, str, str]]) -> None:
    """Colour, dash (solid, dash, dot) and word of each kind of line on a chart."""
    entries = "".join(
        f'<span><b class="line" style="border-top-color:{color};border-top-style:{_DASHES[dash]}"></b>'
        f"{rich(text)}</span>"
        for color, dash, text in items
    )
    if entries:
        st.html(f'<div class="ss-legend ss-lines">{entries}</div>')


_LINE_CHARS = 600


def shortened(line: str) -> str:
    """A line of a log cut to a readable length: launchers print settings of thousands of letters in one.

    >>> shortened("x" * 600) == "x" * 600, shortened("a" * 300 + "x" * 900 + "b" * 100).replace("a" * 300, "A")[:20]
    (True, 'A […900 letters…] bb')
    """
    if len(line) <= _LINE_CHARS:
        return line
    head, tail = line[: _LINE_CHARS // 2], line[-_LINE_CHARS // 6 :]
    return f"{head} […{len(line) - len(head) - len(tail):,} letters…] {tail}"


def log_lines(
    lines: Sequence[tuple[int | None, str, str]], addresses: Sequence[str | None] = (), *, marked: int | None = None
) -> None:
    """Lines of a log with number and a remark as printed, long ones shortened: escaped, never read as HTML.

    `addresses` are where the numbers lead, for the first lines or all; the line numbered `marked` stands out.
    """
    blocks = []
    for place, (line_no, text, remark) in enumerate(lines):
        address = addresses[place] if place < len(addresses) else None
        number = "" if line_no is None else str(line_no)
        number = link(number, address) if number and address else number
        kind = "ss-code ss-marked" if marked is not None and line_no == marked else "ss-code"
        after = f' <span class="remark">{rich(remark)}</span>' if remark else ""
        shown = html.escape(shortened(text.strip()), quote=False)
        blocks.append(f'<div class="{kind}"><span class="line">{number}</span>{shown}{after}</div>')
    st.html("".join(blocks))


def problem(text: str) -> None:
    """An error message as printed; line breaks stay, because they point at the position."""
    st.html(f'<div class="ss-code ss-problem" role="alert">{html.escape(text, quote=False)}</div>')


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    on_select: Callable[[], None] | None = None,
    is_zoomable: bool = False,
    is_fitted: bool | None = None,
) -> None:
    """A figure in the theme's template, sent to the browser after all else of the page (`charts_last`).

    `alt` is one sentence on what it shows; `on_select` runs after a click.

    In a zoomable figure, whose axis and drag mode allow it, a double click goes back to all of it. `is_fitted`: whether
    it is drawn as for a narrow window; by default where the window is.
    """
    _add_caption(figure)
    # not transparent: a picture of a dark page would be light letters on nothing
    figure.update_layout(template=template(current_theme()), paper_bgcolor=current_theme().page)
    if is_narrow() if is_fitted is None else is_fitted:
        narrow.fit(figure, current_theme().page)
    config = _config(key, is_zoomable=is_zoomable)
    selecting: dict[str, Any] = {} if on_select is None else {"on_select": on_select, "selection_mode": "points"}
    draw = partial(st.plotly_chart, figure, key=key, alt=alt, theme=None, config=config, **selecting)
    last(draw, height=figure.layout.height or _UNSTATED_HEIGHT, key=key)


def _add_caption(figure: go.Figure) -> None:
    """Prints page, filters, origin and conditions below the chart, for the picture that a reader saves of it.

    On the page itself the style sheet hides a figure's title: the head is in sight.
    """
    asked, _ = parse_query({name: st.query_params.get_all(name) for name in st.query_params})
    filters = [chip.label for chip in chips(asked) if chip.name in NARROWING]  # the head names the grid
    page, head = st.session_state.get(_TITLE, ""), st.session_state.get(_CAPTION, "")
    text = without_marks(" · ".join(part for part in (page, *filters, head) if part))
    title = {
        "text": plain(textwrap.shorten(text, _NARROW_CHARS if is_narrow() else _CAPTION_CHARS, placeholder=" …")),
        "font": {"size": 10, "color": current_theme().mute},
        "automargin": True,
        "yref": "container",
        "y": 0,
        "yanchor": "bottom",
        "pad": {"b": 4, "t": 4},
        "x": 0.005,
        "xanchor": "left",
    }
    figure.update_layout(title=title)
    if figure.layout.margin.b is not None:  # else plotly finds the room
        figure.update_layout(margin_b=figure.layout.margin.b + _CAPTION_HEIGHT)
        if figure.layout.height is not None:
            figure.update_layout(height=figure.layout.height + _CAPTION_HEIGHT)


def _config(key: str, *, is_zoomable: bool) -> dict[str, Any]:
    """Behaviour of a chart: one button, shown while the pointer is over it, that saves it as a picture."""
    query = {name: st.query_params.get_all(name) for name in st.query_params if name != "picture"}
    wanted = st.query_params.get("picture", "png")
    return {
        "displayModeBar": "hover",
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {
            "format": wanted if wanted in PICTURE_FORMATS else "png",
            "filename": picture_name(str(st.session_state.get(_TITLE, "page")), key, query),
            "scale": 2,
        },
        "doubleClick": "reset" if is_zoomable else False,
    }


def sql_popover(queries: Mapping[str, Query]) -> None:
    """The exact queries behind the page, values written out, ready to copy."""
    with st.popover("SQL", icon=":material/code:"):
        for name, query in queries.items():
            st.html(f'<p class="ss-note"><b>{rich(name)}</b></p>')
            st.code(query.runnable(), language="sql", wrap_lines=True)
            st.html(f'<p class="ss-note">{link("Open in SQL", urls.sql_url(query))}</p>')


def legend(items: Sequence[tuple[str, str]]) -> None:
    """Name and colour of what fills an area, in the order of the stack."""
    marks = "".join(
        f'<span><i style="background:{html.escape(color)}"></i>{rich(name)}</span>' for name, color in items
    )
    st.html(f'<p class="ss-swatches">{marks}</p>')


def empty(text: str) -> None:
    """What to do when there is nothing to show."""
    st.html(f'<p class="ss-empty">{rich(text)}</p>')


def scroll_hint(text: str, least: int) -> None:
    """A hint in a container that scrolls sideways; shown only where it is clearly narrower than `least` pixels.

    A touch screen draws no scroll bar. By keyboard the hint is the only element that takes the focus, from which the
    arrow keys scroll.
    """
    st.html(f"<style>@container ss-scroll (max-width:{least - _HARDLY_CUT}px){{.ss-scrolls{{display:block}}}}</style>")
    st.html(f'<p class="ss-note ss-scrolls" tabindex="0">{rich(text)}</p>')
