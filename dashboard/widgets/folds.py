"""Parts of a page that are closed at first and drawn once they are opened: closed, they cost a browser nothing."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from sweepscope.dashboard.widgets.charts_last import fragment

ARE_OPEN = False
"""Whether folds begin open; tests without a browser, which cannot open one, set it."""


@fragment
def fold(title: str, draw: Callable[[], None], *, key: str, is_open: bool = False) -> None:
    """An expander whose content `draw` draws when it is open. Opening it reruns the fold, and not the page.

    `is_open`: whether it is so at first.
    """
    fold_of_page(title, draw, key=key, is_open=is_open)


def fold_of_page(title: str, draw: Callable[[], None], *, key: str, is_open: bool = False) -> None:
    """The same for content that changes what the page shows: it reruns with all that is done in the fold."""
    part = st.expander(title, expanded=ARE_OPEN or is_open, key=f"fold_{key}", on_change="rerun")
    if part.open:
        with part:
            draw()
