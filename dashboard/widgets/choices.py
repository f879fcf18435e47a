"""Widgets with one choice, which the address keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st

from sweepscope.dashboard.selection import url_state


def select(
    label: str,
    name: str,
    options: Sequence[str],
    default: str | None = None,
    *,
    shown: Callable[[str], str] = str,
    width: int | Literal["stretch"] = "stretch",
    also: Callable[[], None] | None = None,
    help: str | None = None,
) -> str:
    """A selectbox bound to the parameter `name` of the address; the first option is the default unless one is given.

    `shown` is the text of an option; `also` runs after a change; `help` is shown on demand.
    """
    bound = url_state.one(name, options, options[0] if default is None else default, also=also)
    chosen = st.selectbox(
        label, options, key=bound.key, on_change=bound.on_change, width=width, format_func=shown, help=help
    )
    return str(chosen)


def segments(
    label: str,
    name: str,
    options: Sequence[str],
    default: str | None = None,
    *,
    shown: Callable[[str], str] = str,
    is_labelled: bool = False,
) -> str:
    """The same as a row of buttons, one of which is always chosen."""
    bound = url_state.one(name, options, options[0] if default is None else default)
    chosen = st.segmented_control(
        label,
        options,
        required=True,
        key=bound.key,
        on_change=bound.on_change,
        format_func=shown,
        label_visibility="visible" if is_labelled else "collapsed",
    )
    return str(chosen)
