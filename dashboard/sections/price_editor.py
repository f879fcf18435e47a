"""Prices of accelerators: shown, and changed where the page may write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import editing
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.store import adopt_latest
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import heading
from sweepscope.dashboard.queries import prices as queries
from sweepscope.dashboard.text import prices as texts
from sweepscope.dashboard.widgets import basic, folds, tables
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.inspection import keep_prices
from sweepscope.pipeline.store import published

_KEY = "prices"
_OUTCOME = "prices_outcome"
_COLUMNS = ("accelerator", "runs", "gpu_hours", "usd_per_gpu_hour")
_MOST_USD = 10_000.0


def draw(view: View) -> None:
    """The section; nothing where no run names its accelerator."""
    if not view.store.has("prices"):
        return
    frame = queries.prices().run(view.store.con)
    if frame.is_empty():
        return
    title = f"Prices: {texts.qualifier(frame.to_dicts())}"
    folds.fold_of_page(title, lambda: _draw_prices(view, frame), key="prices")


def draw_popover(view: View) -> None:
    """The price of the accelerator on screen, to set beside the figures that it turns into dollars."""
    if view.chosen is None or not view.store.has("prices"):
        return
    with st.popover("Price", icon=":material/payments:"):
        _draw_price(view, view.chosen.accelerator)
        _say_outcome()


def _draw_price(view: View, accelerator: str | None) -> None:
    if accelerator is None:
        basic.note(texts.NO_ACCELERATOR)
        st.html(f'<p class="ss-plain ss-way">{basic.link("Data health", "health")}</p>')
        return
    known = queries.price_of(accelerator).run(view.store.con)["usd_per_gpu_hour"]
    basic.note(texts.ask(accelerator))
    if not editing.may_keep():
        st.code(texts.by_command([{"accelerator": accelerator}], published.named_home()), language=None)
        return
    # a version of the store has a field of its own, which begins with its price
    key = f"{_KEY}_{view.store.version}_{accelerator}"
    st.number_input(
        heading("usd_per_gpu_hour"),
        value=float(known[0]) if known.len() else None,
        min_value=0.0,
        max_value=_MOST_USD,
        step=0.1,
        placeholder="none",
        key=key,
        on_change=_keep_one,
        args=(key, accelerator),
    )


def _keep_one(key: str, accelerator: str) -> None:
    _keep({accelerator: st.session_state[key]})


def _say_outcome() -> None:
    if outcome := st.session_state.pop(_OUTCOME, None):
        (basic.note if outcome[0] else basic.problem)(outcome[1])


def _draw_prices(view: View, frame: pl.DataFrame) -> None:
    basic.note(texts.INSTRUCTIONS)
    if editing.may_keep():
        _draw_editor(view, frame)
    else:
        tables.table(frame, _COLUMNS)
        st.code(texts.by_command(frame.to_dicts(), published.named_home()), language=None, wrap_lines=True)
    _say_outcome()


def _draw_editor(view: View, frame: pl.DataFrame) -> None:
    price = heading("usd_per_gpu_hour")
    shown = frame.select(
        pl.col("accelerator").alias("Accelerator"),
        pl.col("runs").alias("Runs"),
        pl.col("gpu_hours").alias("GPU-hours"),
        pl.col("usd_per_gpu_hour").alias(price),
    )
    # a version of the store has a table of its own: what was typed stays until it is kept, and no longer
    key = f"{_KEY}_{view.store.version}"
    st.data_editor(
        shown,
        key=key,
        hide_index=True,
        disabled=["Accelerator", "Runs", "GPU-hours"],
        placeholder=numbers.MISSING,
        column_config={
            "GPU-hours": st.column_config.NumberColumn(format="%,.1f"),
            price: st.column_config.NumberColumn(min_value=0.0, max_value=_MOST_USD, step=0.01, format="$%.2f"),
        },
    )
    names = frame["accelerator"].to_list()
    st.button("Save prices", type="primary", key=f"{key}_save", on_click=_keep_edited, args=(key, names, price))


def _keep_edited(key: str, names: list[str], column: str) -> None:
    edited: dict[int, dict[str, Any]] = st.session_state[key]["edited_rows"]
    _keep({names[int(row)]: values[column] for row, values in edited.items() if column in values})


def _keep(wanted: Mapping[str, float | None]) -> None:
    if not editing.may_keep():
        return
    try:
        changed = keep_prices.keep(published.default_home(), wanted)
    except SweepscopeError as error:
        st.session_state[_OUTCOME] = (False, str(error))
        return
    st.session_state[_OUTCOME] = (True, texts.kept(changed))
    adopt_latest()
