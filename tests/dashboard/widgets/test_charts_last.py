"""Charts come last to the browser and stand where they were asked for."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.widgets.charts_last import charts_last, last


def shown(app: AppTest) -> list[str]:
    assert not app.exception
    return [one.value for one in app.markdown]


def test_what_waits_is_drawn_after_the_rest_and_in_its_place() -> None:
    def page() -> None:
        import streamlit as st

        from sweepscope.dashboard.widgets.charts_last import charts_last, last

        drawn = st.session_state.setdefault("drawn", [])
        with charts_last():
            last(lambda: (drawn.append("chart"), st.markdown("chart")), height=100, key="chart")
            drawn.append("table")
            st.markdown("table")

    app = AppTest.from_function(page, default_timeout=120).run()
    assert shown(app) == ["chart", "table"]
    assert app.session_state["drawn"] == ["table", "chart"]


def test_in_a_fragment_it_waits_for_the_end_of_the_fragment() -> None:
    def page() -> None:
        import streamlit as st

        from sweepscope.dashboard.widgets.charts_last import charts_last, fragment, last

        drawn = st.session_state.setdefault("drawn", [])

        @fragment
        def part(name: str) -> None:
            last(lambda: drawn.append(f"chart of {name}"), height=100, key=name)
            drawn.append(name)

        with charts_last():
            last(lambda: drawn.append("chart of the page"), height=100, key="page")
            part("part")
            drawn.append("page")

    app = AppTest.from_function(page, default_timeout=120).run()
    assert not app.exception
    assert app.session_state["drawn"] == ["part", "chart of part", "page", "chart of the page"]


def test_outside_of_a_page_nothing_waits() -> None:
    drawn: list[str] = []
    last(lambda: drawn.append("chart"), height=100, key="chart")
    assert drawn == ["chart"]


def test_charts_above_an_error_are_drawn() -> None:
    drawn: list[str] = []

    def fail() -> None:
        with charts_last():
            last(lambda: drawn.append("chart"), height=100, key="chart")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    last(lambda: drawn.append("after"), height=100, key="after")
    assert drawn == ["chart", "after"]
