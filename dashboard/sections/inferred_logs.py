"""Logs that no dialect knows, as Data health shows them: which printed value was taken for which column."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.queries import health as queries
from sweepscope.dashboard.text import inferred_logs as texts
from sweepscope.dashboard.widgets import basic, tables

_HEIGHT = 300


def draw(view: View) -> None:
    """The section; nothing in a store without such logs."""
    if not view.store.has("inferred_columns"):
        return
    logs = queries.inferred_logs().run(view.store.con)
    if logs.is_empty():
        return
    basic.section("Read by inference", numbers.count(logs.height, "log", "logs"))
    rows = logs.to_dicts()
    basic.note(texts.answer(rows))
    shown = logs.with_columns(
        found=_texts(map(texts.named, logs["found"].to_list())),
        doubtful=_texts(map(texts.named, logs["doubtful"].to_list())),
        missing=_texts(texts.missing(row) or None for row in rows),
    )
    picked = tables.selectable_table(
        shown, ("source_path", "found", "doubtful", "missing"), key="inferred_log", height=_HEIGHT
    )
    path = logs["source_path"][picked or 0]
    columns = queries.inferred_columns(path).run(view.store.con)
    named = columns.with_columns(column_name=_texts(map(texts.column_name, columns["column_name"])))
    basic.note(f"What stands for what in {basic.rich(path)}:")
    tables.table(
        named,
        ("column_name", "field", "printed_unit", "is_read", "confidence", "grounds", "line_no", "example"),
        wide=("example",),
    )
    with st.container(horizontal=True):
        basic.sql_popover({"Logs": queries.inferred_logs(), "Columns": queries.inferred_columns(path)})
    basic.note(texts.remedy(path))


def _texts(values: Iterable[str | None]) -> pl.Series:
    return pl.Series(list(values), dtype=pl.String)
