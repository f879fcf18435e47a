"""Logs that no dialect knows, as Data health shows them: which printed value was taken for which column, to correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.queries import health as queries
from sweepscope.dashboard.sections import dialect_editor
from sweepscope.dashboard.text import inferred_logs as texts
from sweepscope.dashboard.view_models.inferred_logs import Form, forms
from sweepscope.dashboard.widgets import basic, tables
from sweepscope.pipeline.inspection import correct_dialect
from sweepscope.pipeline.store import published

_HEIGHT = 300


def draw(view: View) -> None:
    """The section; nothing in a store without such logs, and a home without dialect files."""
    if not view.store.has("inferred_columns", "inferred_dialects"):
        return
    con = view.store.con
    logs = queries.inferred_logs().run(con)
    kept = correct_dialect.kept(published.default_home())
    read = queries.logs_read_by(sorted(kept)).run(con)
    found = forms(logs.to_dicts(), kept, read.to_dicts())
    if not found:
        return
    basic.section(*texts.heading(logs.to_dicts(), sum(bool(form.rows) for form in found), len(found)))
    if logs.height:
        basic.note(texts.answer(logs.to_dicts()))
    picked = tables.selectable_table(
        _table(found),
        ("form", "files", "read_by", "doubtful", "missing", "found"),
        key="inferred_form",
        height=_HEIGHT,
    )
    if picked is None and not logs.height:
        basic.note(texts.PICK)
        return
    form = found[picked if picked is not None and picked < len(found) else 0]
    columns = queries.inferred_columns(form.logs[0] if form.rows else "").run(con)
    dialect_editor.draw(form, columns, sorted(kept))
    queries_shown = {"Logs": queries.inferred_logs()}
    if form.rows:
        queries_shown["Columns"] = queries.inferred_columns(form.logs[0])
    with st.container(horizontal=True):
        basic.sql_popover(queries_shown)


def _shown(form: Form) -> str | None:
    """A line of a step; what was inferred instead where there is none."""
    return form.example or (texts.without_steps(is_table=form.is_table) if form.rows else form.kept_as)


def _table(found: Sequence[Form]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "form": _texts(_shown(form) for form in found),
            "files": pl.Series([len(form.logs) for form in found], dtype=pl.Int64),
            "read_by": _texts(texts.read_by(form.kept_as, is_read=form.is_read_by_kept) for form in found),
            "found": _texts(texts.named(_columns(form, "found")) for form in found),
            "doubtful": _texts(texts.named(_columns(form, "doubtful")) for form in found),
            "missing": _texts(texts.missing_in(form.rows) or None for form in found),
        }
    )


def _columns(form: Form, name: str) -> list[str]:
    return sorted({column for row in form.rows for column in row[name] or ()})


def _texts(values: Iterable[str | None]) -> pl.Series:
    return pl.Series(list(values), dtype=pl.String)
