"""What logs do not say, as Data health shows it: the gaps of each sweep to fill, and what is stated already."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import editing
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.queries import stated as queries
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text import stated as texts
from sweepscope.dashboard.view_models.stated import with_shared_folders
from sweepscope.dashboard.widgets import basic, tables
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.inspection import state_facts
from sweepscope.pipeline.reference.accelerators import load_accelerators
from sweepscope.pipeline.store import published

_PER_ROW = 3
_HEIGHT = 196
_OUTCOME = "stated_outcome"


def draw(view: View) -> None:
    """The section; nothing where no run lacks anything and nothing is stated."""
    rows = queries.gaps().run(view.store.con).to_dicts()
    known = state_facts.stated_in(published.default_home())
    if not rows and not known:
        return
    basic.section("What logs do not say", texts.summary(rows))
    if rows:
        _draw_gaps(with_shared_folders(rows))
    if known:
        _draw_known(view, known)
    with st.container(horizontal=True):
        basic.sql_popover({"Gaps": queries.gaps(), "Stated": queries.stated()})


def _draw_gaps(rows: Sequence[Row]) -> None:
    table = pl.DataFrame(
        [{"folder": row["folder"], "runs": row["runs"], "lacking": texts.lacking(row)} for row in rows]
    )
    picked = tables.selectable_table(table, ("folder", "runs", "lacking"), key="stated_folder", height=_HEIGHT)
    row = rows[picked if picked is not None and picked < len(rows) else 0]
    folder, key = str(row["folder"]), f"stated_{zlib.crc32(str(row['folder']).encode()):x}"
    basic.note(texts.instructions(folder))
    names = [name for name in queries.GAPS if row[f"no_{name}"]] + ["cluster"]
    values: dict[str, str | int] = {}
    for start in range(0, len(names), _PER_ROW):
        for name, column in zip(names[start : start + _PER_ROW], st.columns(_PER_ROW), strict=False):
            with column:
                if value := _field(name, f"{key}_{name}"):
                    values[name] = value
                basic.note(texts.WHY[name])
    if not editing.may_keep():
        options = " ".join(f"--set {name}={shlex.quote(str(value))}" for name, value in values.items())
        home = published.named_home()
        basic.note(texts.by_command(shlex.quote(folder), options or "--set accelerator=NAME", home))
        return
    st.button("Save facts", type="primary", key=f"{key}_save", on_click=_keep, args=(folder, values))
    if outcome := st.session_state.get(_OUTCOME):
        (basic.note if outcome[0] else basic.problem)(outcome[1])


def _field(name: str, key: str) -> str | int | None:
    label = texts.LABELS[name]
    if name == "accelerator":
        cards = load_accelerators()["accelerator"].to_list()
        card: str | None = st.selectbox(label, cards, index=None, key=key, placeholder="choose")
        return card
    if name in ("model", "cluster"):
        return st.text_input(label, key=key, placeholder="not stated").strip()
    number = st.number_input(label, 1, None, None, step=1, key=key, placeholder="not stated")
    return int(number) if number else None


def _draw_known(view: View, known: list[state_facts.Statement]) -> None:
    may_keep = editing.may_keep()
    basic.note("**Stated already.** " + texts.applied(queries.stated().run(view.store.con).to_dicts()))
    for number, one in enumerate(known):
        for name, value in one.values.items():
            text, button = st.columns([5, 1], vertical_alignment="center")
            where, what = texts.statement(one.folder, one.match, {name: value})
            text.html(f'<p class="ss-note">{basic.rich(f"{where}: **{what}**")}</p>')
            if may_keep and not one.match:
                button.button("Withdraw", key=f"withdraw_{number}_{name}", on_click=_withdraw, args=(one.folder, name))


def _keep(folder: str, values: dict[str, str | int]) -> None:
    if not editing.may_keep():
        return
    if not values:
        st.session_state[_OUTCOME] = (False, texts.NOTHING_CHOSEN)
        return
    try:
        path = state_facts.keep(published.default_home(), folder, values)
    except SweepscopeError as error:
        st.session_state[_OUTCOME] = (False, str(error))
        return
    st.session_state[_OUTCOME] = (True, texts.kept(str(path), _command(folder)))


def _withdraw(folder: str, name: str) -> None:
    if not editing.may_keep():
        return
    try:
        state_facts.withdraw(published.default_home(), folder, name)
    except SweepscopeError as error:
        st.session_state[_OUTCOME] = (False, str(error))


def _command(folder: str) -> str:
    return f"sweepscope ingest {shlex.quote(folder)}{published.named_home()}"
