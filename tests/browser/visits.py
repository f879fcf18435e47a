"""Ways to a page: by its address, as a shared link is opened, and by the sidebar, as a reader goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sweepscope.dashboard.navigation import Entry

SCREEN_HEIGHT = 900  # px, at a width of 1440: a laptop's


@contextmanager
def opened(
    browser: Any,
    url: str,
    *,
    scheme: str = "light",
    width: int = 1440,
    height: int = SCREEN_HEIGHT,
    is_settled: bool = True,
) -> Iterator[Any]:
    """A tab of its own, with nothing in its memory; `is_settled`: once the page of the address is drawn."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(url)
    if is_settled:
        settled(page)
    yield page
    context.close()


def settled(page: Any) -> None:
    """Waits until the script has ended and nothing of its last run is left, which Streamlit shows paler."""
    page.wait_for_selector("h1")
    page.wait_for_selector('[data-test-script-state="notRunning"]', state="attached")
    page.wait_for_function("!document.querySelector('.stMain [data-stale=true]')")


COUNT_SHIFTS = """(() => {
  window.shifts = [];
  const note = one => one.hadRecentInput || window.shifts.push(one.value);
  new PerformanceObserver(list => list.getEntries().forEach(note)).observe({type: "layout-shift", buffered: true});
})()"""
"""To be run before a document's own scripts: has the browser add up by how much what is on screen moves by itself."""
SHIFTS = "window.shifts.reduce((sum, one) => sum + one, 0)"

_ARE_DRAWN = """!document.querySelector('[data-testid=stSkeleton]')
&& [...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(one => one.querySelector('.main-svg'))"""


def drawn(page: Any) -> None:
    """Waits until the charts have taken their height, too: till then what is below them moves."""
    settled(page)
    page.wait_for_function(_ARE_DRAWN)


def follow(page: Any, link: Any, title: str) -> None:
    """Clicks a link to the page of this title; again where the click was lost, because the link moved under it."""
    drawn(page)

    def click() -> None:
        if not page.title().startswith(f"{title} "):
            link.first.click()

    begun = "title => document.title.startsWith(title + ' ')"
    until(click, lambda: page.wait_for_function(begun, arg=title, timeout=60_000), tries=2)
    settled(page)


def until(click: Callable[[], None], shown: Callable[[], object], *, tries: int = 6) -> None:
    """Clicks in a chart until that shows: while charts above still take their height, a point moves away from under it.

    Raises what `shown` raises (Playwright's `TimeoutError`) after the last try.
    """
    from playwright.sync_api import TimeoutError as NotShownError

    for left in reversed(range(tries)):
        click()
        try:
            shown()
        except NotShownError:
            if left == 0:
                raise
        else:
            return


def go(page: Any, entry: Entry) -> None:
    """Follows the sidebar to another page: a fifth of what a tab of its own costs."""
    if page.title().startswith(f"{entry.title} "):
        return
    page.locator("[data-testid=stSidebar]").get_by_role("link", name=entry.title, exact=True).click()
    arrived(page, entry.title)


def arrived(page: Any, title: str) -> None:
    """Waits until the page of this title is drawn: after a click the one before looks settled until the next begins."""
    page.wait_for_function("title => document.title.startsWith(title + ' ')", arg=title)
    settled(page)


def until_answer(page: Any, sentence: str, *, is_other: bool = False) -> None:
    """Waits until the head's sentence is this one, or another one: pages of one title differ by it."""
    head = "document.querySelector('.ss-answer')"
    page.wait_for_function(
        f"([sentence, isOther]) => {head} && ({head}.innerText === sentence) !== isOther", arg=[sentence, is_other]
    )
    settled(page)
