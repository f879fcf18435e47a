"""Parts of a page that take longer than the rest of it: the page is drawn without them, and they follow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

import streamlit as st

PATIENCE_S = 0.05
"""How long a page waits for a result before it goes on without: what was found before is there at once."""
_LOOK_EVERY_S = 0.5

Found = TypeVar("Found")


def draw_later(result: Future[Found], draw: Callable[[Found], None], waiting: Callable[[], None]) -> None:
    """Draws a result; until it is there `waiting` draws, and the page is not held up.

    Raises what the work on the result raised.
    """
    with suppress(TimeoutError):
        draw(result.result(PATIENCE_S))
        return
    # looks again by itself, until there is something to draw the page with
    st.fragment(_wait, run_every=_LOOK_EVERY_S)(result, waiting)


def _wait(result: Future[Found], waiting: Callable[[], None]) -> None:
    if result.done():
        st.rerun()
    waiting()
