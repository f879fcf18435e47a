"""Tables in shown units, their twins below charts, and downloads in base units. Thin over streamlit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import polars as pl
import streamlit as st

from dashboard import addresses, labels
from dashboard.queries.query import Query

_ROW_HEIGHT = 32  # of tables, in pixels
_LETTER_WIDTH = 6.4  # of a table's text, in pixels, on average of a layout's letters
_CELL_PADDING = 22


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
        if name == "layout" or name.endswith("_layout"):
            config[labels.heading(name)] = st.column_config.TextColumn(width=_width(frame[name]))
        if name.endswith("_url"):
            config[labels.heading(name)] = st.column_config.LinkColumn(display_text=r"^https?://(?:www\.)?([^/]+)")
        if name == "run_id":
            heading = labels.heading(name)
            display = display.with_columns(pl.col(heading).map_elements(addresses.run_url, pl.String))
            config[heading] = st.column_config.LinkColumn(display_text=r"run=(.+)$")
    return display, config


def _width(texts: pl.Series) -> int:
    """Pixels that show each text whole: left alone, a table measures its first rows and cuts what is longer."""
    longest = texts.cast(pl.String).str.len_chars().max()
    return round(_LETTER_WIDTH * (longest if isinstance(longest, int) else 0)) + _CELL_PADDING


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
