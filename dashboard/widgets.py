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

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from dashboard import labels, theme
from dashboard.queries.query import Query
from dashboard.theme import Theme

_STYLE = (Path(__file__).parent / "assets" / "style.css").read_text()
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


def badge(origin: str) -> str:
    """Origin badge as HTML: measured solid, published dashed, simulated dotted, estimated italic."""
    return f'<span class="ss-badge {html.escape(origin)}">{html.escape(origin)}</span>'


def head(title: str, answer: str, meta: str = "", origins: Sequence[str] = ()) -> None:
    """Title, the answer in one sentence, and the line on origin, n and conditions."""
    st.title(title, anchor=False)
    badges = "".join(badge(origin) for origin in origins)
    second = f'<p class="ss-meta">{badges}{rich(meta)}</p>' if meta or badges else ""
    st.html(f'<p class="ss-answer">{rich(answer)}</p>{second}')


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


def run_url(run_id: str) -> str:
    """Address of a run's page, relative so that it works behind any base path."""
    return f"run?run={run_id}"


def rows(pairs: Sequence[tuple[str, str]], *, is_quiet_value: bool = False) -> None:
    """Rows of name and value. Both are HTML: pass them through `rich` or `link`."""
    left, right = ("", "value quiet") if is_quiet_value else ("quiet", "value")
    lines = "".join(
        f'<div><span class="{left}">{name}</span><span class="{right}">{value}</span></div>' for name, value in pairs
    )
    st.html(f'<div class="ss-rows">{lines}</div>')


def chart(figure: go.Figure, *, key: str, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """A figure in the theme's template. `alt` says what it shows in one sentence; `on_select` runs after a click."""
    figure.update_layout(template=theme.template(tokens()))
    if on_select is None:
        st.plotly_chart(figure, key=key, alt=alt, theme=None, config=_CHART_CONFIG)
    else:
        st.plotly_chart(
            figure, key=key, alt=alt, theme=None, config=_CHART_CONFIG, on_select=on_select, selection_mode="points"
        )


def table(frame: pl.DataFrame, columns: Sequence[str] | None = None, *, key: str | None = None) -> None:
    """A table in shown units and headings; an unknown value is a dash."""
    display = labels.display_frame(frame, columns)
    config = {
        labels.heading(name): st.column_config.NumberColumn(format=f"%,.{how.decimals}f")
        for name in columns or frame.columns
        if (how := labels.shown(name)) and frame.schema[name].is_numeric()
    }
    st.dataframe(display, hide_index=True, column_config=config, placeholder=labels.MISSING, key=key)


def table_twin(title: str, frame: pl.DataFrame, columns: Sequence[str], *, csv: pl.DataFrame, csv_name: str) -> None:
    """The chart as a table, closed at first, with the full filtered set as CSV in base units."""
    with st.expander(title):
        table(frame, columns)
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


def sql_popover(queries: Mapping[str, Query]) -> None:
    """The exact queries behind the page, values written out, ready to copy."""
    with st.popover("SQL", icon=":material/code:"):
        for name, query in queries.items():
            st.html(f'<p class="ss-note"><b>{rich(name)}</b></p>')
            st.code(query.runnable(), language="sql")


def empty(text: str) -> None:
    """What to do when there is nothing to show."""
    st.html(f'<p class="ss-empty">{rich(text)}</p>')
