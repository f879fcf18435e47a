"""What a person does first, in a real browser: look, filter, pick a cell, follow it to a run, ask in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepscope.dashboard.navigation import PAGES, Entry
from tests.browser.accessibility import assert_accessible
from tests.browser.visits import SCREEN_HEIGHT, arrived, drawn, follow, go, opened, settled, until, until_answer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LISTED = [entry for entry in PAGES if not entry.is_hidden]
HIDDEN = [entry for entry in PAGES if entry.is_hidden]


def chart_texts(page: Any) -> list[str]:
    page.wait_for_selector(".js-plotly-plot .annotation-text")
    return [text.replace("\xa0", " ") for text in page.locator(".js-plotly-plot .annotation-text").all_text_contents()]


def test_the_heatmap_holds_the_playbooks_26_measured_and_2_empty_cells(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/best") as page:
        page.wait_for_selector(".js-plotly-plot")
        texts = chart_texts(page)
        assert sum(bool(re.match(r"\d+\.\d %", text)) for text in texts) == 26
        assert sum("won't fit" in text for text in texts) == 2


def test_picking_a_cell_fills_the_panel_and_the_url_and_leads_to_its_run(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/best") as page:
        page.wait_for_selector(".js-plotly-plot .annotation-text")
        # The cell is found by its text on the chart, as a person would.
        cell = page.locator(".js-plotly-plot .annotation-text", has_text="34.3 %").first
        panel = page.get_by_text("80B on 16 nodes").first
        until(lambda: cell.click(force=True), lambda: panel.wait_for(timeout=20_000))
        page.wait_for_url("**/best?*nodes=*")
        settled(page)
        shared = page.url
        follow(page, page.locator("a[href*='run?run=']"), "Run")
        page.get_by_text("ultrascale_playbook_all_runs").first.wait_for()
    with opened(browser, shared) as page:
        page.get_by_text("80B on 16 nodes").first.wait_for()


def test_one_step_back_leads_from_a_cell_and_from_another_grid_to_the_overview(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/") as page:
        first = page.locator(".ss-answer").inner_text()
        cell = page.locator(".st-key-overview_heat .annotation-text", has_text="34.3 %").first
        until(lambda: cell.click(force=True), lambda: page.wait_for_url("**/best?model=*", timeout=20_000))
        arrived(page, "Best configurations")
        page.go_back()
        arrived(page, "Overview")
        drawn(page)
        page.get_by_text("bigscience sweeps").first.click()
        page.wait_for_url("**/?origin=published*")
        until_answer(page, first, is_other=True)
        page.go_back()
        page.wait_for_url(f"{demo}/")
        until_answer(page, first)


def test_the_keyboard_path_chooses_a_cell_too(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/best") as page:
        page.get_by_role("combobox", name=re.compile("Nodes")).first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('.stMain').innerText.includes('on 1 node')")


def test_a_failed_run_shows_its_evidence_line(browser: Any, own: str) -> None:
    with opened(browser, f"{own}/sql") as page:
        run_id = ask(page, "select run_id from runs where status = 'oom' and origin = 'measured'")
    with opened(browser, f"{own}/run?run={run_id}") as page:
        page.get_by_text("CUDA out of memory").first.wait_for()
        page.get_by_text("log_1001.out").first.wait_for()


def submit(page: Any, sql: str) -> None:
    page.locator("textarea").first.fill(sql)
    page.get_by_role("button", name=re.compile("^Run")).first.click()
    settled(page)


def ask(page: Any, sql: str) -> str:
    """Type a query, run it, and return the first cell from the CSV download."""
    submit(page, sql)
    page.get_by_text(re.compile(r"^1 row in")).first.wait_for()
    settled(page)
    downloads: list[Any] = []

    def keep(download: Any) -> None:
        downloads.append(download)

    page.on("download", keep)
    try:
        for _ in range(6):  # a click is lost, or its download given up, where the page is just being drawn anew
            downloads.clear()
            page.locator(".st-key-sql_csv button").click()
            for _ in range(80):
                if not downloads:
                    page.wait_for_timeout(250)
            if downloads and downloads[-1].failure() is None:
                return Path(downloads[-1].path()).read_text().splitlines()[1]
    finally:
        page.remove_listener("download", keep)
    raise AssertionError("the result could not be downloaded")


def test_sql_answers_and_refuses_in_words(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/sql") as page:
        assert ask(page, "select 40 + 2 as answer") == "42"
        submit(page, "drop table runs")
        page.get_by_text(re.compile("SELECT")).first.wait_for()


def test_a_slow_query_keeps_nobody_waiting_and_can_be_cancelled(browser: Any, own: str) -> None:
    with opened(browser, f"{own}/sql") as slow, opened(browser, f"{own}/sql") as other:
        for _ in range(2):
            submit(slow, "select count(*) from range(1000000000000)")
            slow.get_by_text(re.compile(r"^Running for")).first.wait_for()
        assert ask(other, "select 40 + 2 as answer") == "42"
        slow.get_by_role("button", name="Cancel").click()
        slow.get_by_text("The query was cancelled").first.wait_for()
        assert ask(slow, "select 1 as one") == "1"


def test_failures_lead_to_the_line_that_decided_and_the_choice_stays_in_the_address(browser: Any, own: str) -> None:
    with opened(browser, f"{own}/failures") as page:
        page.get_by_text(re.compile("1 of 4 runs failed")).first.wait_for()
        page.wait_for_selector(".js-plotly-plot")
        page.get_by_role("spinbutton", name=re.compile("Price")).fill("2.5")
        page.keyboard.press("Enter")
        page.wait_for_url("**price=2.5*")
        follow(page, page.get_by_role("link", name=re.compile("CUDA out of memory")), "Run")
        page.get_by_text("Ran out of GPU memory").first.wait_for()
        page.get_by_text("Cost and other tries").first.wait_for()


_PARITY = ".st-key-parity .js-plotly-plot"
_THIRD_POINT = """selector => {
  const plot = document.querySelector(selector);
  plot.scrollIntoView({block: "center"});
  const {xaxis, yaxis} = plot._fullLayout;
  const {x, y} = plot._fullData.find(trace => trace.name === "healthy");
  const box = plot.getBoundingClientRect();
  return {x: box.x + xaxis._offset + xaxis.d2p(x[3]), y: box.y + yaxis._offset + yaxis.d2p(y[3])};
}"""


def test_a_click_on_a_point_takes_that_run_apart(browser: Any, demo: str) -> None:
    with opened(browser, f"{demo}/estimator") as page:
        page.get_by_text(re.compile("Median error of estimated step time")).first.wait_for()
        # drawn by WebGL, as 2,000 points are: the middle of a run is where its figures are on the axes
        page.wait_for_function(f"document.querySelector({_PARITY!r})?._fullLayout?.xaxis?._offset > 0")

        def click() -> None:
            place = page.evaluate(_THIRD_POINT, _PARITY)
            page.mouse.click(place["x"], place["y"])

        until(click, lambda: page.wait_for_url("**picked=*", timeout=20_000))
        settled(page)
        picked = re.search(r"picked=(\w+)", page.url)
        assert picked is not None
        page.locator(f"a[href*='run?run={picked[1]}']").first.wait_for()


def test_own_runs_come_first_and_published_ones_stay_apart(browser: Any, own: str) -> None:
    with opened(browser, f"{own}/best") as page:
        page.get_by_text("measured", exact=True).first.wait_for()
        assert "Llama 8.86B" not in page.locator(".stMain").inner_text()


def assert_says_what_to_do(page: Any) -> None:
    page.get_by_text("sweepscope ingest").first.wait_for()
    text = page.locator(".stMain").inner_text()
    assert "sweepscope demo" in text
    assert "Traceback" not in text


def test_an_empty_store_says_what_to_do_on_every_page(browser: Any, empty: str) -> None:
    with opened(browser, empty) as page:
        for entry in LISTED:
            go(page, entry)
            assert_says_what_to_do(page)
        assert_accessible(page)


@pytest.mark.parametrize("entry", HIDDEN, ids=lambda entry: entry.url)
def test_an_empty_store_says_what_to_do_where_a_link_leads(browser: Any, empty: str, entry: Entry) -> None:
    with opened(browser, f"{empty}/{entry.url}", scheme="dark") as page:
        assert_says_what_to_do(page)
        assert_accessible(page)


_END = """(() => {
  const page = document.querySelector('.stMain [data-testid=stMainBlockContainer]');
  return page.getBoundingClientRect().bottom - parseFloat(getComputedStyle(page).paddingBottom)
    + document.querySelector('.stMain').scrollTop;
})()"""
"""Where the last element of a page ends, in pixels from its top."""


@pytest.fixture(scope="module", params=["light", "dark"])
def reader(request: pytest.FixtureRequest, browser: Any, demo: str) -> Iterator[Any]:
    """One tab in which a reader goes from page to page."""
    with opened(browser, demo, scheme=request.param) as page:
        yield page


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.url)
def test_pages_are_accessible_and_at_most_two_screens_high(reader: Any, entry: Entry) -> None:
    go(reader, entry)
    assert_accessible(reader)
    reader.wait_for_function(f"({_END}) <= {2 * SCREEN_HEIGHT}")  # charts take their height once they are drawn


@pytest.mark.parametrize("address", ["", "best", "run?run=none"])
def test_a_visit_leaves_no_error_in_the_console(browser: Any, own: str, address: str) -> None:
    errors: list[str] = []
    with opened(browser, "about:blank", is_settled=False) as page:
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("response", lambda answer: errors.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{own}/{address}")
        settled(page)
        page.wait_for_load_state("networkidle")
    assert errors == []


def test_the_first_page_is_found_by_its_name_too(browser: Any, own: str) -> None:
    with opened(browser, f"{own}/overview?origin=measured") as page:
        page.wait_for_url(re.compile(r"/\?origin=measured$"))
        settled(page)
        assert "not found" not in page.locator("body").inner_text().lower()
