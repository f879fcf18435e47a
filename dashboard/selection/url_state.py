"""Choices that live in the address under stable keys.

Streamlit's own binding writes the words that a choice is shown with, and those change (a facet's hold a count). Here
the address is the one place that keeps the choice: a widget is set from it before it is drawn, and writes to it when
it changes. A default leaves the address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

_UNMET = "url_unmet"


@dataclass(frozen=True)
class Bound:
    """Arguments for a widget: its key, already set, and its `on_change`."""

    key: str
    on_change: Callable[[], None]


def one(name: str, options: Sequence[str], default: str, *, also: Callable[[], None] | None = None) -> Bound:
    """Binds a widget with one choice to the parameter `name`. An unknown value in the address counts as the default.

    `also` runs after a change, for example to go back to the first page.
    """
    wanted = st.query_params.get(name, default)
    st.session_state[_key(name)] = wanted if wanted in options else default
    _note_unmet(name, [] if wanted == default else [wanted], options)

    def write() -> None:
        value = st.session_state[_key(name)]
        put(name, [] if value in (None, default) else [value])
        if also is not None:
            also()

    return Bound(_key(name), write)


def several(name: str, options: Sequence[str], *, also: Callable[[], None] | None = None) -> Bound:
    """Binds a widget with any number of choices to the repeated parameter `name`; none chosen leaves the address."""
    st.session_state[_key(name)] = [value for value in st.query_params.get_all(name) if value in options]
    _note_unmet(name, st.query_params.get_all(name), options)

    def write() -> None:
        put(name, st.session_state[_key(name)])
        if also is not None:
            also()

    return Bound(_key(name), write)


def begin() -> None:
    """Forgets what earlier runs of the page could not find."""
    st.session_state[_UNMET] = {}


def unmet() -> list[str]:
    """What the address asks for and the widgets bound since `begin` do not offer, as "name=value"."""
    return [f"{name}={value}" for name, values in st.session_state.get(_UNMET, {}).items() for value in values]


def _note_unmet(name: str, wanted: Sequence[str], options: Sequence[str]) -> None:
    missing = [value for value in wanted if value not in options]
    if missing:
        st.session_state.setdefault(_UNMET, {})[name] = missing


def put(name: str, values: Sequence[str]) -> None:
    """Writes a parameter to the address, or takes it out."""
    if values:
        st.query_params[name] = list(values)
    elif name in st.query_params:
        del st.query_params[name]


def _key(name: str) -> str:
    return f"url_{name}"
