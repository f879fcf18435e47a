"""The pages on memory in a real browser: a click on a track, zooming, accessibility in both themes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.accessibility import assert_accessible, assert_chart_text_stands_out
from tests.browser.visits import follow, opened, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SNAPSHOT = "/snapshot?file=%2Flogs%2Fc1%2Frank0.pickle&device=0"


def test_a_click_on_a_track_shows_that_run(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/memory") as page:
        page.get_by_text("Would fit with expandable_segments").first.wait_for()
        plot = page.locator(".st-key-peaks .js-plotly-plot .nsewdrag").first

        def click() -> None:
            box = plot.bounding_box()
            plot.click(position={"x": box["width"] / 3, "y": box["height"] * 5.5 / 6}, force=True)

        until(click, lambda: page.wait_for_url("**run=c1*", timeout=20_000))
        page.get_by_text("of the card").first.wait_for()


def test_a_snapshot_opens_from_the_page_on_memory_and_keeps_its_instant(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/memory") as page:
        follow(page, page.get_by_text("c1/rank0.pickle"), "Snapshot")
        page.get_by_text("of it were optimizer states").first.wait_for()
        handle = page.get_by_role("slider", name="What was alive after so many events")
        handle.first.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**at=*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/memory", SNAPSHOT])
def test_the_pages_are_accessible(browser: Any, diagnosed: str, path: str, scheme: str) -> None:
    """No violation of axe-core's rules; text on axes, which axe skips, has a contrast of 4.5 or more."""
    with opened(browser, f"{diagnosed}{path}", scheme=scheme) as page:
        assert_chart_text_stands_out(page, scheme)
        assert_accessible(page)
