"""SQL: questions to start from, an editor, the data dictionary; queries run in the sandbox."""

from __future__ import annotations

import io
from uuid import uuid4

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.queries import canned, dictionary
from sweepscope.dashboard.queries import runs as runs_queries
from sweepscope.dashboard.queries.runs import Search
from sweepscope.dashboard.sandbox import turns
from sweepscope.dashboard.sandbox.run_query import Limits, run_query
from sweepscope.dashboard.sandbox.turns import TURNS, Turn
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.text import sql as texts
from sweepscope.dashboard.widgets import basic, choices, lists
from sweepscope.pipeline.errors import SweepscopeError

TITLE = "SQL"
_LIMITS = Limits()
_QUESTIONS = {question.key: question for question in canned.CANNED}
# Addresses longer than this break in mail and chat programs.
_MAX_LINK_CHARACTERS = 1_500


def _page(view: View) -> None:
    tables = dictionary.relations().run(view.store.con)
    runs = runs_queries.total(Search()).run(view.store.con)["runs"][0]
    basic.head(TITLE, texts.answer(tables.height, runs, _LIMITS), str(view.store.path))
    _seed(view)
    left, right = st.columns([0.68, 0.32], gap="large")
    with left:
        _draw_editor(view)
        _draw_outcome()
    with right:
        _draw_dictionary(tables, dictionary.columns().run(view.store.con))
    basic.how_to_read(texts.HOW_TO_READ)


def _seed(view: View) -> None:
    """First draw of a visit: the query of the link, not run, or the first question with its answer."""
    if "sql_text" in st.session_state:
        return
    linked = st.query_params.get("sql")
    key = st.query_params.get("question", canned.CANNED[0].key)
    question = _QUESTIONS.get(key, canned.CANNED[0])
    st.session_state["sql_text"] = linked or question.sql
    st.session_state.pop("sql_turn", None)
    if not linked:
        _run(view, question.sql)


def _ask(view: View) -> None:
    """A question was picked: its query replaces the text and runs."""
    question = _QUESTIONS[st.query_params.get("question", canned.CANNED[0].key)]
    st.session_state["sql_text"] = question.sql
    url_state.put("sql", [])
    _run(view, question.sql)


def _submit(view: View) -> None:
    """The text was submitted: run it, and put it into the address when that stays short enough to send."""
    text = st.session_state["sql_text"]
    is_short = len(text) <= _MAX_LINK_CHARACTERS
    is_canned = any(text == question.sql for question in canned.CANNED)
    url_state.put("sql", [text] if is_short and not is_canned else [])
    _run(view, text)


def _run(view: View, text: str) -> None:
    """Take a turn, in place of an earlier one of this visit, and wait a moment for its end."""
    visit = st.session_state.setdefault("sql_visit", uuid4().hex)
    path = view.store.path
    turn = TURNS.take(visit, lambda stop: run_query(path, text, limits=_LIMITS, stop=stop))
    st.session_state["sql_turn"] = turn
    turn.wait(turns.PATIENCE_S)


def _draw_editor(view: View) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        choices.select(
            "Question",
            "question",
            list(_QUESTIONS),
            canned.CANNED[0].key,
            shown=lambda key: _QUESTIONS[key].question,
            also=lambda: _ask(view),
        )
        shell.share_popover()
    with st.form("sql_form", border=False):
        st.text_area("Query", key="sql_text", height=210)
        st.form_submit_button("Run", type="primary", shortcut="Ctrl+Enter", on_click=_submit, args=(view,))


def _draw_outcome() -> None:
    turn: Turn | None = st.session_state.get("sql_turn")
    if turn is None:
        basic.note(texts.from_link())
        return
    if not turn.is_over:
        _draw_progress(turn)
        return
    try:
        result = turn.result()
    except SweepscopeError as error:
        basic.problem(str(error))
        return
    basic.note(texts.result_line(result.frame.height, result.seconds, is_truncated=result.truncated))
    st.dataframe(result.frame, hide_index=True, placeholder="NULL", key="sql_result", height=_height(result.frame))
    _draw_downloads(result.frame)


@st.fragment(run_every=0.5)
def _draw_progress(turn: Turn) -> None:
    """How far a query is, until it is over: then the page is drawn anew."""
    if turn.is_over:
        st.rerun()
    basic.note(texts.progress(TURNS.place(turn), turn.running_s or 0.0, TURNS.slots, _LIMITS))
    st.button("Cancel", on_click=TURNS.cancel, args=(turn,), key="sql_cancel")


def _height(frame: pl.DataFrame) -> int:
    return min(38 + 35 * max(frame.height, 1), 420)


def _draw_downloads(frame: pl.DataFrame) -> None:
    with st.container(horizontal=True, gap="small"):
        for ending, label, mime, write in (
            ("csv", "CSV", "text/csv", lambda: frame.write_csv().encode()),
            ("parquet", "Parquet", "application/vnd.apache.parquet", lambda: _parquet(frame)),
            ("json", "JSON", "application/json", lambda: frame.write_json().encode()),
        ):
            st.download_button(
                label,
                write,
                file_name=f"result.{ending}",
                mime=mime,
                icon=":material/download:",
                key=f"sql_{ending}",
                on_click="ignore",
            )


def _parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def _draw_dictionary(tables: pl.DataFrame, columns: pl.DataFrame) -> None:
    kinds = {row["table_name"]: "view" if row["is_view"] else "table" for row in tables.iter_rows(named=True)}
    names = list(kinds)
    if not names:
        return
    name = choices.select(
        "Data dictionary",
        "table",
        names,
        "runs" if "runs" in names else names[0],
        shown=lambda table: f"{table} · {kinds[table]}",
    )
    comment = tables.filter(pl.col("table_name") == name)["comment"][0]
    basic.note(comment or "No description.")
    of_table = columns.filter(pl.col("table_name") == name).select("column_name", "data_type", "comment")
    lists.definitions([(column, kind, text or "") for column, kind, text in of_table.iter_rows()], height=520)


_page(shell.begin())
