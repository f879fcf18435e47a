"""Tables in shown units, their twins below charts, and downloads in base units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.format import columns as column_texts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.devices import are_ranks
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.widgets import basic, folds, urls

_ROW_HEIGHT = 32  # of tables, in pixels
_LETTER_WIDTH, _BLANK_WIDTH = 6.8, 3.4  # of a table's text, in pixels, on average
_CELL_PADDING = 20
_MEASURED_ROWS = 8  # rows by which a table sizes a column without a given width
_LONGEST_WHOLE = 64  # letters of texts that are shown whole; paths and sentences are longer
_MOST_DECIMALS = 4
MOST_ROWS = 400
"""Rows of a table that is read from its top: of more, the first are drawn and all are downloaded."""


def table(
    frame: pl.DataFrame,
    columns: Sequence[str] | None = None,
    *,
    key: str | None = None,
    wide: Sequence[str] = (),
    height: int | None = None,
) -> None:
    """A table in shown units and headings; an unknown value is a dash. `wide` columns hold sentences or paths.

    `height` is the most it takes, in pixels; without one it is Streamlit's.
    """
    _draw(frame, columns, wide, key=key, **(_rows(frame, height) if height else {}))


def selectable_table(frame: pl.DataFrame, columns: Sequence[str], *, key: str, height: int = 520) -> int | None:
    """A table whose rows can be picked, by mouse or keyboard. Returns the picked row's position, or None.

    `height` is the most it takes, in pixels.
    """
    modes = ["single-row", "single-cell"]
    state = _draw(frame, columns, key=key, **_rows(frame, height), on_select="rerun", selection_mode=modes)
    picked = state["selection"]
    rows, cells = picked.get("rows", []), picked.get("cells", [])
    return rows[0] if rows else cells[0][0] if cells else None


def ticking_table(
    frame: pl.DataFrame, columns: Sequence[str], *, key: str, height: int = 520
) -> tuple[list[int], int | None]:
    """A table whose rows can be ticked, and whose cells open a row: positions of the ticked rows, and of the opened
    one or None.
    """
    modes = ["multi-row", "single-cell"]
    state = _draw(frame, columns, key=key, **_rows(frame, height), on_select="rerun", selection_mode=modes)
    picked = state["selection"]
    cells = picked.get("cells", [])
    return list(picked.get("rows", [])), cells[0][0] if cells else None


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
    _draw(frame, columns, wide, key=key, **_rows(frame, height), on_select=on_select, selection_mode="single-row")


def _rows(frame: pl.DataFrame, height: int) -> dict[str, Any]:
    """Heights of a table and of its rows in pixels; of the table at most `height`."""
    return {"height": min(height, _ROW_HEIGHT * (frame.height + 1) + 4), "row_height": _ROW_HEIGHT}


def _draw(frame: pl.DataFrame, columns: Sequence[str] | None, wide: Sequence[str] = (), **options: Any) -> Any:
    display, config = _shown(frame, columns)
    config |= {column_texts.heading(name): st.column_config.TextColumn(width="large") for name in wide}
    return st.dataframe(display, hide_index=True, column_config=config, placeholder=numbers.MISSING, **options)


def _shown(frame: pl.DataFrame, columns: Sequence[str] | None) -> tuple[pl.DataFrame, dict[str, Any]]:
    """`frame` in shown units under shown headings, and how Streamlit draws its columns, by heading."""
    if are_ranks(frame) and "num_gpus" in frame.columns:
        frame = frame.rename({"num_gpus": "cpu_ranks"})
        columns = None if columns is None else ["cpu_ranks" if name == "num_gpus" else name for name in columns]
    display = column_texts.display_frame(frame, columns)
    config: dict[str, Any] = {}
    for name in columns or frame.columns:
        heading, how = column_texts.heading(name), column_texts.shown(name)
        if how and frame.schema[name].is_numeric():
            decimals = _decimals(display[heading], how.decimals)
            config[heading] = st.column_config.NumberColumn(format=f"%,.{decimals}f")
        if frame.schema[name] == pl.String and (width := _width(frame[name])) is not None:
            config[heading] = st.column_config.TextColumn(width=width)
        if name.endswith("_url"):
            config[heading] = st.column_config.LinkColumn(display_text=r"^https?://(?:www\.)?([^/]+)")
        if name == "run_id":
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
    enough = (decimals for decimals in range(usual, _MOST_DECIMALS) if smallest >= 0.5 * 10.0**-decimals)
    return next(enough, _MOST_DECIMALS)


def first_rows(
    frame: pl.DataFrame,
    columns: Sequence[str],
    *,
    csv_name: str,
    csv: pl.DataFrame | None = None,
    wide: Sequence[str] = (),
    height: int | None = None,
) -> None:
    """A table in the order of its rows, of very many the first, with all of them as CSV in base units below.

    Columns that hold nothing are left out here; the CSV has them.

    Args:
        frame: rows of the table, with `columns`.
        columns: what is shown, in order.
        csv_name: name of the file, without its ending.
        csv: rows of the download, `frame` unless given.
        wide: columns with sentences or paths.
        height: the most it takes, in pixels; without one it is Streamlit's.
    """
    shown = [name for name in columns if frame.is_empty() or frame[name].count()]
    table(frame.head(MOST_ROWS), shown, wide=wide, height=height)
    if frame.height > MOST_ROWS:
        basic.note(f"The first {numbers.number(MOST_ROWS)} of {numbers.count(frame.height, 'row')}; the CSV has all.")
    csv_button(frame if csv is None else csv, csv_name)


def table_twin(
    title: str,
    frame: pl.DataFrame,
    columns: Sequence[str],
    *,
    csv_name: str,
    csv: pl.DataFrame | None = None,
    is_counted: bool = False,
) -> None:
    """The chart as a table, closed at first: `first_rows` of the full filtered set.

    Args:
        frame: rows of the table, with `columns`.
        csv: rows of the download, `frame` unless given.
        is_counted: whether the title ends with the number of rows.
    """

    def draw() -> None:
        first_rows(frame, columns, csv_name=csv_name, csv=csv)

    counted = f"{title}, {numbers.count(frame.height, 'row')}" if is_counted else title
    folds.fold(counted, draw, key=csv_name)


def csv_button(frame: pl.DataFrame, name: str) -> None:
    """Download of `frame` in the store's own column names and base units, written when it is clicked."""
    st.download_button(f"CSV · {numbers.count(frame.height, 'row')}", frame.write_csv, **_csv_file(name))


def csv_later(query: Query, con: Reader, name: str, *, rows: int) -> None:
    """Download of a whole query, run only when it is clicked; `rows` is how many there are."""
    cursor = con.cursor()
    label = f"CSV · {numbers.count(rows, 'row')}"
    st.download_button(label, lambda: query.run(cursor).write_csv(), **_csv_file(name), on_click="ignore")


def _csv_file(name: str) -> dict[str, Any]:
    icon = ":material/download:"
    return {"file_name": f"{name}.csv", "mime": "text/csv", "icon": icon, "key": f"csv_{name}"}
