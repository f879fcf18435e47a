"""What axe-core says of all that pages hold, folded parts and popovers included: of a demo and of one's own sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sweepscope.dashboard.navigation import PAGES, Entry
from tests.browser.accessibility import assert_accessible, assert_accessible_unfolded
from tests.browser.visits import go, opened

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LISTED = [entry for entry in PAGES if not entry.is_hidden]
CHOSEN = ["run?run=f1", "run?run=rb", "compare?runs=c1,c2", "log?file=%2Flogs%2Fb.log&line=950", "node?node=gpu-0"]


@pytest.fixture(scope="module")
def reader(browser: Any, demo: str) -> Iterator[Any]:
    """One tab in which a reader goes from page to page."""
    with opened(browser, demo) as page:
        yield page


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.url)
def test_what_the_pages_of_the_demo_fold_is_accessible(reader: Any, entry: Entry) -> None:
    go(reader, entry)
    assert_accessible_unfolded(reader)


@pytest.mark.parametrize("address", CHOSEN)
def test_pages_on_something_chosen_are_accessible(browser: Any, diagnosed: str, address: str) -> None:
    with opened(browser, f"{diagnosed}/{address}") as page:
        assert_accessible_unfolded(page)
    with opened(browser, f"{diagnosed}/{address}", scheme="dark") as page:
        assert_accessible(page)


def test_a_run_with_profiler_traces_shows_them(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/run?run=rb") as page:
        page.get_by_text("Profiler trace").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_a_small_sweep_is_accessible(browser: Any, own: str, scheme: str) -> None:
    with opened(browser, own, scheme=scheme) as page:
        for entry in LISTED:
            go(page, entry)
            assert_accessible(page)
