"""Pieces that every page is built from: head, badges, figures, fact rows, charts, tables, SQL. Thin over streamlit.

Sentences come from `words`, with `**bold**` around the fact; everything that reaches HTML is escaped here, because
names and log lines are other people's text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import plotly.graph_objects as go
import polars as pl
import streamlit as st

from dashboard import labels, theme
from dashboard.charts.memory import NEAR_LIMIT
from dashboard.queries.query import Query
from dashboard.theme import Theme

_STYLE = (Path(__file__).parent / "assets" / "style.css").read_text()
_ROW_HEIGHT = 32  # of tables, in pixels
_CHART_CONFIG = {"displayModeBar": False, "doubleClick": False}


@dataclass(frozen=True)
class Figure:
    """One plain figure: label above, note below."""

    label: str
    value: str
    note: str = ""


def tokens() -> Theme:
    """Tokens of the theme that the reader's system prefers."""
    return theme.theme(st.context.theme.type)


def style(current: Theme) -> None:
    """The style sheet with the theme's tokens as CSS variables."""
    names = (
        "page",
        "ink",
        "soft",
        "mute",
        "axis",
        "rule",
        "surface",
        "accent",
        "cell",
        "hatch",
        "completed",
        "warning",
        "failed",
    )
    variables = "".join(f"--ss-{name}:{getattr(current, name)};" for name in names)
    st.html(f"<style>:root{{{variables}}}{_STYLE}</style>")


def rich(text: str) -> str:
    """Escapes `text` and turns `**fact**` into bold.

    >>> rich("**36 %** of <runs>")
    '<b>36 %</b> of &lt;runs&gt;'
    """
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text, quote=False))


def _whole_names(text: str) -> str:
    """Keeps short names with a hyphen (Llama-3.2-1B) on one line."""
    return re.sub(r"(?<!\S)(?=\S*\d)(\w[\w.]*-[\w.-]{1,24})", r'<span class="ss-name">\1</span>', text)


def badge(origin: str) -> str:
    """Origin badge as HTML: measured solid, published dashed, simulated dotted, estimated italic."""
    return f'<span class="ss-badge {html.escape(origin)}">{html.escape(origin)}</span>'


def head(
    title: str,
    answer: str,
    meta: str = "",
    origins: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
) -> None:
    """Title, the answer in one sentence, and the line on origin, n and conditions; `links` are (text, url) after it."""
    st.title(title, anchor=False)
    badges = "".join(badge(origin) for origin in origins)
    after = ", ".join(link(text, url) for text, url in links)
    after = f"{'' if meta.endswith('.') else ' ·'} Also here: {after}" if after else ""
    second = f'<p class="ss-meta">{badges}{rich(meta)}{after}</p>' if meta or badges else ""
    st.html(f'<p class="ss-answer">{_whole_names(rich(answer))}</p>{second}')


def section(title: str, qualifier: str = "") -> None:
    """Heading of a chart or list, with a grey qualifier after it."""
    st.html(f'<h2 class="ss-section">{rich(title)} <span>{rich(qualifier)}</span></h2>')


def note(text: str) -> None:
    """Small print below a chart."""
    st.html(f'<p class="ss-note">{rich(text)}</p>')


def figures(items: Sequence[Figure]) -> None:
    """Plain figures in one row."""
    cells = "".join(
        f'<div><div class="label">{rich(item.label)}</div><div class="value">{rich(item.value)}</div>'
        f'<div class="note">{rich(item.note)}</div></div>'
        for item in items
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


def sql_url(query: Query) -> str:
    """Address of the SQL page with `query` filled in, its values written out."""
    return f"sql?{urlencode({'sql': query.runnable()})}"


def run_url(run_id: str) -> str:
    """Address of a run's page, relative so that it works behind any base path."""
    return f"run?run={run_id}"


def hang_url(source_path: str, line_no: int) -> str:
    """Address of a hang: the line, or the record of a dump, that tells of it."""
    return f"hang?{urlencode({'at': f'{source_path}:{line_no}'})}"


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
    """Name, size and share of a whole as grey bars; above 90 % the size says so. A share of None draws no bar."""
    lines = []
    for name, size, share in items:
        is_near = share is not None and share > NEAR_LIMIT
        bar = "" if share is None else f'<i style="width:{min(share, 1):.1%}"></i>'
        text = f"<b>{rich(size)}</b> near limit" if is_near else rich(size)
        lines.append(f'<div><span>{rich(name)}</span><span class="track">{bar}</span><span>{text}</span></div>')
    st.html(f'<div class="ss-tracks">{"".join(lines)}</div>')


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


def log_lines(lines: Sequence[tuple[int | None, str, str]]) -> None:
    """Lines of a log with number and a remark, exactly as they stand there: escaped, never read as HTML."""
    blocks = (
        f'<div class="ss-code"><span class="line">{"" if line_no is None else line_no}</span>'
        f"{html.escape(text.strip(), quote=False)}"
        + (f' <span class="remark">{rich(remark)}</span>' if remark else "")
        + "</div>"
        for line_no, text, remark in lines
    )
    st.html("".join(blocks))


def problem(text: str) -> None:
    """An error in words, as the program said it; line breaks stay, because they point at the place."""
    st.html(f'<div class="ss-code ss-problem" role="alert">{html.escape(text, quote=False)}</div>')


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


def chart(
    figure: go.Figure, *, key: str, alt: str, on_select: Callable[[], None] | None = None, is_zoomable: bool = False
) -> None:
    """A figure in the theme's template. `alt` says what it shows in one sentence; `on_select` runs after a click.

    In a zoomable figure, whose axis and drag mode allow it, a double click goes back to all of it.
    """
    figure.update_layout(template=theme.template(tokens()))
    if on_select is None:
        config = {**_CHART_CONFIG, "doubleClick": "reset"} if is_zoomable else _CHART_CONFIG
        st.plotly_chart(figure, key=key, alt=alt, theme=None, config=config)
    else:
        st.plotly_chart(
            figure, key=key, alt=alt, theme=None, config=_CHART_CONFIG, on_select=on_select, selection_mode="points"
        )


def table(
    frame: pl.DataFrame, columns: Sequence[str] | None = None, *, key: str | None = None, wide: Sequence[str] = ()
) -> None:
    """A table in shown units and headings; an unknown value is a dash. `wide` columns hold sentences or paths."""
    display, config = _shown(frame, columns)
    config |= {labels.heading(name): st.column_config.TextColumn(width="large") for name in wide}
    st.dataframe(display, hide_index=True, column_config=config, placeholder=labels.MISSING, key=key)


def selectable_table(frame: pl.DataFrame, columns: Sequence[str], *, key: str, height: int = 520) -> int | None:
    """A table whose rows can be picked, by mouse or keyboard. Returns the picked row's position, or None.

    `height` is the most it takes, in pixels.
    """
    display, config = _shown(frame, columns)
    state = st.dataframe(
        display, hide_index=True, column_config=config, placeholder=labels.MISSING, key=key,
        height=min(height, _ROW_HEIGHT * (frame.height + 1) + 4),
        row_height=_ROW_HEIGHT, on_select="rerun", selection_mode=["single-row", "single-cell"],
    )  # fmt: skip
    picked = state["selection"]
    rows, cells = picked.get("rows", []), picked.get("cells", [])
    return rows[0] if rows else cells[0][0] if cells else None


def picking_table(
    frame: pl.DataFrame,
    columns: Sequence[str],
    *,
    key: str,
    on_select: Callable[[], None],
    height: int = 330,
    wide: Sequence[str] = (),
) -> None:
    """A table whose rows can be picked; `on_select` runs once per pick and finds it under `key`."""
    display, config = _shown(frame, columns)
    config |= {labels.heading(name): st.column_config.TextColumn(width="large") for name in wide}
    st.dataframe(
        display, hide_index=True, column_config=config, placeholder=labels.MISSING, key=key,
        height=min(height, _ROW_HEIGHT * (frame.height + 1) + 4),
        row_height=_ROW_HEIGHT, on_select=on_select, selection_mode="single-row",
    )  # fmt: skip


def _shown(frame: pl.DataFrame, columns: Sequence[str] | None) -> tuple[pl.DataFrame, dict[str, Any]]:
    display = labels.display_frame(frame, columns)
    config: dict[str, Any] = {
        labels.heading(name): st.column_config.NumberColumn(format=f"%,.{how.decimals}f")
        for name in columns or frame.columns
        if (how := labels.shown(name)) and frame.schema[name].is_numeric()
    }
    for name in columns or frame.columns:
        if name.endswith("_url"):
            config[labels.heading(name)] = st.column_config.LinkColumn(display_text=r"^https?://(?:www\.)?([^/]+)")
        if name == "run_id":
            heading = labels.heading(name)
            display = display.with_columns(pl.col(heading).map_elements(run_url, pl.String))
            config[heading] = st.column_config.LinkColumn(display_text=r"run=(.+)$")
    return display, config


def table_twin(title: str, frame: pl.DataFrame, columns: Sequence[str], *, csv: pl.DataFrame, csv_name: str) -> None:
    """The chart as a table, closed at first, with the full filtered set as CSV in base units.

    Columns that hold nothing are left out here; the CSV has them.
    """
    with st.expander(title):
        table(frame, [name for name in columns if frame.is_empty() or frame[name].count()])
        csv_button(csv, csv_name)


def csv_button(frame: pl.DataFrame, name: str) -> None:
    """Download of `frame` in the store's own column names and base units."""
    st.download_button(
        f"CSV · {labels.count(frame.height, 'row')}",
        frame.write_csv(),
        file_name=f"{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"csv_{name}",
    )


def csv_later(query: Query, con: duckdb.DuckDBPyConnection, name: str, *, rows: int) -> None:
    """Download of a whole query, run only when somebody asks for it; `rows` is how many there are."""
    cursor = con.cursor()
    st.download_button(
        f"CSV · {labels.count(rows, 'row')}", lambda: query.run(cursor).write_csv(), file_name=f"{name}.csv",
        mime="text/csv", icon=":material/download:", key=f"csv_{name}", on_click="ignore",
    )  # fmt: skip


def sql_popover(queries: Mapping[str, Query]) -> None:
    """The exact queries behind the page, values written out, ready to copy."""
    with st.popover("SQL", icon=":material/code:"):
        for name, query in queries.items():
            st.html(f'<p class="ss-note"><b>{rich(name)}</b></p>')
            st.code(query.runnable(), language="sql")
            st.html(f'<p class="ss-note">{link("Open in SQL", sql_url(query))}</p>')


def legend(items: Sequence[tuple[str, str]]) -> None:
    """Name and colour of what fills an area, in the order of the stack."""
    marks = "".join(
        f'<span><i style="background:{html.escape(color)}"></i>{rich(name)}</span>' for name, color in items
    )
    st.html(f'<p class="ss-swatches">{marks}</p>')


def empty(text: str) -> None:
    """What to do when there is nothing to show."""
    st.html(f'<p class="ss-empty">{rich(text)}</p>')
