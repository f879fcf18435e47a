"""Charts are sent to the browser last, each to its place: headline, figures and tables are read while plotly loads.

The place has the chart's height from the beginning, so that nothing moves under a reader when the chart comes.

A browser evaluates plotly, five megabytes, when the first chart of a tab arrives: for a second it draws nothing else
and answers no click. What the server sent before the chart is on screen by then, and what it sent after it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec

import streamlit as st

PLACE = "place_"
_P = ParamSpec("_P")
_waiting: ContextVar[list[Callable[[], object]] | None] = ContextVar("waiting", default=None)
"""What is to be drawn at the end of the innermost `charts_last`; None outside of any."""


@contextmanager
def charts_last() -> Iterator[None]:
    """Draws at its end what `last` was given meanwhile, also where an error ends it early."""
    waiting: list[Callable[[], object]] = []
    before = _waiting.set(waiting)
    try:
        yield
    except Exception:
        _draw(waiting)
        raise
    finally:
        _waiting.reset(before)
    _draw(waiting)


def last(draw: Callable[[], object], *, height: int, key: str) -> None:
    """Has `draw` draw where this is called, after all else of the page or fragment; at once outside of both.

    Args:
        draw: draws one element.
        height: its height in pixels.
        key: names the place among those of the page; the style sheet knows all places by the prefix PLACE.
    """
    waiting = _waiting.get()
    if waiting is None:
        draw()
        return
    place = st.container(height=height, border=False, key=f"{PLACE}{key}")

    def draw_there() -> None:
        with place:
            draw()

    waiting.append(draw_there)


def fragment(part: Callable[_P, None]) -> Callable[_P, None]:
    """Streamlit's fragment, whose charts come last in it: drawn after it, they and their clicks would be the page's."""

    @wraps(part)
    def with_charts(*args: _P.args, **kwargs: _P.kwargs) -> None:
        with charts_last():
            part(*args, **kwargs)

    return st.fragment(with_charts)


def _draw(waiting: list[Callable[[], object]]) -> None:
    for draw in waiting:
        draw()
