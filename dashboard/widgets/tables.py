"""Tables in shown units, their twins below charts, and downloads in base units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.format import columns as column_texts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.widgets import urls

_ROW_HEIGHT = 32  # of tables, in pixels
_LETTER_WIDTH, _BLANK_WIDTH = 6.8, 3.4  # of a table's text, in pixels, on average
_CELL_PADDING = 20
_MEASURED_ROWS = 8  # rows by which a table sizes a column without a given width
_LONGEST_WHOLE = 64  # letters of texts that are shown whole; paths and sentences are longer
_MOST_DECIMALS = 4


def table(
    frame: pl.DataFrame, columns: Sequence[str] | None = None, *, key: str | None = None, wide: Sequence[str] = ()
) -> None:
    """A table in shown units and headings; an unknown value is a dash. `wide` columns hold sentences or paths."""
    display, config = _shown(frame, columns)
    config |= {column_texts.heading(name): st.column_config.TextColumn(width="large") for name in wide}
    st.dataframe(display, hide_index=True, column_config=config, placeholder=numbers.MISSING, key=key)


def selectable_table(frame: pl.DataFrame, columns: Sequence[str], *, key: str, height: int = 520) -> int | None:
    """A table whose rows can be picked, by mouse or keyboard. Returns the picked row's position, or None.

    `height` is the most it takes, in pixels.
    """
    display, config = _shown(frame, columns)
    state = st.dataframe(
        display,
        hide_index=True,
        column_config=config,
        placeholder=numbers.MISSING,
        key=key,
        height=min(height, _ROW_HEIGHT * (frame.height + 1) + 4),
        row_height=_ROW_HEIGHT,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
    )
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
    config |= {column_texts.heading(name): st.column_config.TextColumn(width="large") for name in wide}
    st.dataframe(
        display,
        hide_index=True,
        column_config=config,
        placeholder=numbers.MISSING,
        key=key,
        height=min(height, _ROW_HEIGHT * (frame.height + 1) + 4),
        row_height=_ROW_HEIGHT,
        on_select=on_select,
        selection_mode="single-row",
    )


def _shown(frame: pl.DataFrame, columns: Sequence[str] | None) -> tuple[pl.DataFrame, dict[str, Any]]:
    display = column_texts.display_frame(frame, columns)
    config: dict[str, Any] = {
        column_texts.heading(name): st.column_config.NumberColumn(
            format=f"%,.{_decimals(display[column_texts.heading(name)], how.decimals)}f"
        )
        for name in columns or frame.columns
        if (how := column_texts.shown(name)) and frame.schema[name].is_numeric()
    }
    for name in columns or frame.columns:
        if frame.schema[name] == pl.String and (width := _width(frame[name])) is not None:
            config[column_texts.heading(name)] = st.column_config.TextColumn(width=width)
        if name.endswith("_url"):
            config[column_texts.heading(name)] = st.column_config.LinkColumn(
                display_text=r"^https?://(?:www\.)?([^/]+)"
            )
        if name == "run_id":
            heading = column_texts.heading(name)
            display = display.with_columns(pl.col(heading).map_elements(urls.run_url, pl.String))
            config[heading] = st.column_config.LinkColumn(display_text=r"run=(.+)$")
    return display, config


def _width(texts: pl.Series) -> int | None:
    """Pixels that show each text of a column whole, where one further down is longer than the rows a table measures.

    None where it measures enough, and for paths and sentences, which would push all others out of sight.
    """
    letters = texts.str.len_chars().fill_null(0)
    blanks = texts.str.count_matches("[ ·]").fill_null(0)
    pixels = (letters - blanks) * _LETTER_WIDTH + blanks * _BLANK_WIDTH
    longest, widest = letters.max(), pixels.max()
    is_short = isinstance(longest, int) and longest <= _LONGEST_WHOLE
    if not is_short or not isinstance(widest, float) or widest == pixels.head(_MEASURED_ROWS).max():
        return None
    return round(max(widest, _LETTER_WIDTH * len(column_texts.heading(texts.name)))) + _CELL_PADDING


def _decimals(shown: pl.Series, usual: int) -> int:
    """Decimals of a column, more than usual where a value that is something would read as nothing: 0.04 GPU-hours."""
    if usual == 0:
        return 0
    smallest = shown.abs().filter(shown.abs() > 0).min()
    if not isinstance(smallest, float) or smallest >= 0.5 * 10.0**-usual:
        return usual
    needed = next((places for places in range(usual, _MOST_DECIMALS) if smallest >= 0.5 * 10.0**-places), None)
    return _MOST_DECIMALS if needed is None else needed


def table_twin(title: str, frame: pl.DataFrame, columns: Sequence[str], *, csv: pl.DataFrame, csv_name: str) -> None:
    """The chart as a table, closed at first, with the full filtered set as CSV in base units.

    Columns that hold nothing are left out here; the CSV has them.
    """
    with st.expander(title):
        table(frame, [name for name in columns if frame.is_empty() or frame[name].count()])
        csv_button(csv, csv_name)


def csv_button(frame: pl.DataFrame, name: str) -> None:
    """Download of `frame` in the store's own column names and base units, written when it is clicked."""
    st.download_button(
        f"CSV · {numbers.count(frame.height, 'row')}",
        frame.write_csv,
        file_name=f"{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"csv_{name}",
    )


def csv_later(query: Query, con: Reader, name: str, *, rows: int) -> None:
    """Download of a whole query, run only when it is clicked; `rows` is how many there are."""
    cursor = con.cursor()
    st.download_button(
        f"CSV · {numbers.count(rows, 'row')}",
        lambda: query.run(cursor).write_csv(),
        file_name=f"{name}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"csv_{name}",
        on_click="ignore",
    )
