"""On a screen as narrow as a phone's: every chart is whole, or says that it scrolls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.accessibility import assert_accessible
from tests.browser.visits import opened, settled

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
PHONE = 420
_CUT = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
  const room = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('text')].filter(text => {
    const place = text.getBoundingClientRect();
    return place.width && (place.left < room.left - 1 || place.right > room.right + 1
      || place.top < room.top - 1 || place.bottom > room.bottom + 1);
  }).map(text => text.textContent);
})"""
_WIDE = """() => [...document.querySelectorAll('.stMain .js-plotly-plot')]
  .filter(chart => chart.getBoundingClientRect().right > document.documentElement.clientWidth)
  .map(chart => chart.closest('[class*=st-key]').className)"""


def drawn_again(page: Any) -> None:
    """The window's width reaches the server after the first drawing, and what is drawn meanwhile is pale."""
    page.wait_for_selector(".js-plotly-plot text")
    page.wait_for_timeout(2_500)
    settled(page)


@pytest.mark.parametrize(
    "path", ["", "scaling", "explorer", "estimator", "frontier", "failures?origin=simulated", "memory"]
)
def test_no_text_of_a_chart_is_cut_and_no_chart_is_wider_than_the_screen(browser: Any, demo: str, path: str) -> None:
    with opened(browser, f"{demo}/{path}", width=PHONE) as page:
        drawn_again(page)
        assert page.evaluate(_CUT) == []
        assert page.evaluate(_WIDE) == []


def test_a_grid_with_layouts_says_that_it_scrolls_and_only_there(browser: Any, demo: str) -> None:
    hint = "More columns to the right"
    with opened(browser, f"{demo}/best", width=PHONE) as page:
        drawn_again(page)
        page.get_by_text(hint).first.wait_for(state="visible")
        assert_accessible(page)
    with opened(browser, f"{demo}/best") as page:
        page.wait_for_selector(".js-plotly-plot text")
        assert not page.get_by_text(hint).first.is_visible()


def test_the_frontier_is_whole_beside_the_sidebar_of_a_small_laptop(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/frontier", width=1024) as page:
        drawn_again(page)
        page.locator(".st-key-frontier .annotation-text", has_text="derived from tokens/s/GPU").first.wait_for()
        assert page.evaluate(_CUT) == []
        assert page.evaluate(_WIDE) == []
        assert page.evaluate("() => document.querySelector('.st-key-frontier').scrollHeight") > 1_200, (
            "rows of two lines"
        )
