"""Nothing on screen moves by itself when the charts come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.visits import COUNT_SHIFTS, SHIFTS, drawn, opened, settled

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

_WAITING_CHART = '[class*="st-key-place_"] [data-testid=stSkeleton]'
_REST_IS_THERE = """![...document.querySelectorAll('[data-testid=stSkeleton]')].some(
    one => !one.closest('[class*="st-key-place_"]'))"""
_POSITIONS = """[...document.querySelectorAll('.stMain h1, .stMain .ss-section, .stMain [data-testid=stExpander]')].map(
    one => [one.innerText.split("\\n")[0], Math.round(one.getBoundingClientRect().y)])"""


@pytest.mark.parametrize("page", ["overview", "failures", "memory", "scaling", "estimator"])
def test_what_is_around_a_chart_stays_where_it_is_when_the_chart_comes(browser: Any, demo: str, page: str) -> None:
    with opened(browser, "about:blank", is_settled=False) as tab:
        tab.add_init_script(COUNT_SHIFTS)
        held: list[Any] = []

        def hold(request: Any) -> None:
            held.append(request)

        tab.route("**/PlotlyChart.*.js", hold)
        tab.goto(f"{demo}/{page}")
        settled(tab)
        tab.wait_for_selector(_WAITING_CHART)
        tab.wait_for_function(_REST_IS_THERE)
        assert not tab.locator(".js-plotly-plot").count()
        before = tab.evaluate(_POSITIONS)
        tab.evaluate("window.shifts = []")
        for request in held:
            request.continue_()
        tab.unroute("**/PlotlyChart.*.js")
        drawn(tab)
        assert tab.locator(".js-plotly-plot").count()
        assert len(before) > 2
        assert tab.evaluate(_POSITIONS) == before
        assert tab.evaluate(SHIFTS) < 0.01
