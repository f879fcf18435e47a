"""Draws the filters: the popover behind "Filters", and a removable chip per active one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.shell import View, set_filters
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.selection.filters import ALL, GRID, LAYOUT_RANGES, UNKNOWN, Filters, Range, chips
from sweepscope.dashboard.selection.slices import Slice, options

_LABELS = {
    "origin": "Origin",
    "accelerator": "Accelerator",
    "seq_len": "Sequence",
    "gbs_tokens": "Batch, tokens",
    "sweep": "Sweep",
    "framework": "Framework",
    "zero_stage": "ZeRO stage",
    "recompute": "Recomputation",
    "precision": "Precision",
}
_UNSET = {"sweep": ALL}


def draw(view: View, facets: pl.DataFrame | None = None) -> None:
    """The Filters popover. `facets` is one row of lists: the values that each layout filter can take."""
    active = len(chips(view.filters))
    with st.popover(f"Filters · {active}" if active else "Filters", icon=":material/tune:"):
        if view.chosen is not None:
            _draw_slice(view, view.chosen)
        if facets is not None and facets.height:
            _draw_facets(view.filters, facets.row(0, named=True))
        if active:
            st.button("Clear all", on_click=set_filters, args=(Filters(),), key="filters_clear")


def draw_chips(filters: Filters) -> None:
    """One button per active filter that removes it."""
    for chip in chips(filters):
        st.button(
            chip.label,
            key=f"chip_{chip.name}",
            icon=":material/close:",
            icon_position="right",
            help="Remove this filter",
            on_click=set_filters,
            args=(chip.without,),
        )


def _draw_slice(view: View, chosen: Slice) -> None:
    st.html('<p class="ss-note"><b>Which grid</b></p>')
    columns = st.columns(2)
    for index, name in enumerate(GRID):
        values = options(name, chosen, view.slices)
        current = getattr(chosen, name)
        key = _seeded(name, _UNSET.get(name, UNKNOWN) if current is None else current)
        columns[index % 2].selectbox(
            _LABELS[name],
            values,
            key=key,
            format_func=_shown_as(name),
            disabled=len(values) < 2,
            on_change=_apply_choice,
            args=(view.filters, name, key),
        )


def _draw_facets(filters: Filters, values: Mapping[str, Any]) -> None:
    several = {name: found for name, found in values.items() if found is not None and len(found) > 1}
    if several:
        st.html('<p class="ss-note"><b>Which runs in it</b></p>')
    columns = st.columns(2)
    for index, (name, found) in enumerate(several.items()):
        column = columns[index % 2]
        if name in LAYOUT_RANGES:
            ends = _ends(getattr(filters, name), found)
            key = _range_key(name, ends)
            column.select_slider(
                name.upper(), found, value=ends, key=key, on_change=_apply_range, args=(filters, name, key, found)
            )
        else:
            key = _seeded(name, [value for value in getattr(filters, name) if value in found])
            changed: dict[str, Any] = {"on_change": _apply_choice, "args": (filters, name, key)}
            column.multiselect(_LABELS[name], found, key=key, placeholder="all", **changed)


def _ends(span: Range | None, found: Sequence[int]) -> tuple[int, int]:
    """The nearest found values that still hold the whole span, for a slider that knows only found values."""
    minimum = found[0] if span is None or span.minimum is None else span.minimum
    maximum = found[-1] if span is None or span.maximum is None else span.maximum
    low = max((value for value in found if value <= minimum), default=found[0])
    return low, min((value for value in found if value >= max(maximum, low)), default=found[-1])


def _seeded(name: str, value: object) -> str:
    """Key of a widget, set to `value` before it is drawn: the URL is the one place that keeps filters."""
    key = f"filter_{name}"
    st.session_state[key] = value
    return key


def _range_key(name: str, ends: tuple[int, int]) -> str:
    """Key of a range slider that shows `ends`.

    A slider given its value through the session state forgets that it is a range (streamlit 1.67), so it gets
    `value` instead, and a new key whenever the address has moved on without it: a chip removed, another link opened.
    """
    count = st.session_state.setdefault(f"filter_{name}_count", 0)
    if st.session_state.get(f"filter_{name}_{count}", ends) != ends:
        count += 1
        st.session_state[f"filter_{name}_count"] = count
    return f"filter_{name}_{count}"


def _apply_choice(filters: Filters, name: str, key: str) -> None:
    value = st.session_state[key]
    if name in GRID:
        # A new origin or accelerator may not have the sequence that was chosen under the old one.
        for later in GRID[GRID.index(name) + 1 :]:
            filters = filters.having(later, None)
    set_filters(filters.having(name, tuple(value) if isinstance(value, list) else value))


def _apply_range(filters: Filters, name: str, key: str, found: Sequence[int]) -> None:
    low, high = st.session_state[key]
    span = Range(None if low == found[0] else low, None if high == found[-1] else high)
    set_filters(filters.having(name, None if span == Range() else span))


def _shown_as(name: str) -> Callable[[Any], str]:
    def shown_as(value: Any) -> str:
        if value == ALL:
            return "all together"
        if isinstance(value, int):
            return numbers.token_count(value) if name == "gbs_tokens" else numbers.number(value)
        return str(value)

    return shown_as
