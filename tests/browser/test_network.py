"""The pages on the network and on one hang, in a real browser: findings, curves, the topology picture, ranks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.accessibility import assert_accessible, assert_chart_text_stands_out
from tests.browser.visits import drawn, follow, opened, settled, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

WATCHDOG, RECORDER = "/hang?at=%2Flogs%2Fb.log%3A950", "/hang?at=%2Flogs%2Ftrace_rank_0.log%3A4"


def choose(page: Any, name: str, option: str) -> None:
    """Picks an option of a selectbox by keyboard."""
    page.get_by_role("combobox", name=re.compile(name)).first.focus()
    page.keyboard.type(option)
    page.get_by_role("option", name=re.compile(option)).first.wait_for()
    page.keyboard.press("Enter")


def test_a_finding_leads_to_its_run_and_the_operation_stays_in_the_address(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/network?sweep=sweep") as page:
        page.wait_for_selector(".js-plotly-plot")
        follow(page, page.get_by_text("NCCL_IB_DISABLE=1 is set"), "Run")
        page.wait_for_url("**/run?run=rb*")


def test_a_finding_folds_and_unfolds_by_keyboard(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/network") as page:
        finding = page.locator("details.ss-fold").first
        line = finding.locator("li").first
        line.wait_for(state="visible")
        finding.locator("summary").focus()
        page.keyboard.press("Enter")
        line.wait_for(state="hidden")
        page.keyboard.press("Enter")
        line.wait_for(state="visible")


def test_choosing_a_hang_shows_its_ranks_and_leads_to_its_page(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/network") as page:
        page.get_by_text("Suspect: rank 3.").first.wait_for()
        canvas = page.locator('.st-key-hangs canvas[data-testid="data-grid-canvas"]').first
        last_row = {"x": 120, "y": 32 * 3 + 16}  # below the header
        verdict = page.get_by_text("Not determinable.").first
        until(lambda: canvas.click(position=last_row, force=True), lambda: verdict.wait_for(timeout=20_000))
        page.get_by_text("waited in this one: 8").first.wait_for()
        follow(page, page.get_by_role("link", name="Open this hang"), "Hang")
        page.wait_for_url("**/hang?at=*960*")
        page.get_by_text("Not determinable.").first.wait_for()


def test_the_topology_draws_ranks_and_links_and_a_ring_by_choice(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/network") as page:
        page.get_by_text("Topology: hosts, ranks").click()
        picture = page.locator(".st-key-topology .js-plotly-plot")
        picture.locator(".textpoint text").first.wait_for()
        assert sorted(map(int, picture.locator(".textpoint text").all_text_contents())) == list(range(16))
        assert {"n0", "n1"} <= set(picture.locator(".annotation-text").all_text_contents())
        assert picture.locator(".annotation-arrow-g").count() == 0
        legend = page.locator(".ss-lines", has_text="RDMA").first.inner_text()
        assert "RDMA network, straight from the GPU" in legend
        assert "sockets" not in legend, "those are of the other file's communicator"
        choose(page, "Show", "ring of channel")
        page.wait_for_url("**show=ring*")
        picture.locator(".annotation-arrow-g").first.wait_for(state="attached")
        settled(page)
        assert picture.locator(".annotation-arrow-g").count() == 16, "one arrow from each rank to the next"


def test_a_hang_of_the_watchdog_shows_every_rank_and_its_lines(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}{WATCHDOG}") as page:
        page.get_by_text("Suspect: rank 3.").first.wait_for()
        ranks = page.locator(".st-key-ranks .js-plotly-plot .textpoint text")
        ranks.first.wait_for()
        texts = [text.replace("\xa0", " ") for text in ranks.all_text_contents()]
        assert sorted(texts, key=lambda text: text[-1]) == [f"{'▲' if rank == 3 else '■'} {rank}" for rank in range(8)]
        page.get_by_text("[rank7]: Watchdog caught collective operation timeout").first.wait_for()
        follow(page, page.get_by_role("link", name=re.compile("Run rb")), "Run")
        page.wait_for_url("**/run?run=rb*")


def test_a_hang_of_the_flight_recorder_shows_the_sequence_and_where_they_were(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}{RECORDER}") as page:
        page.get_by_text("Suspect: rank 1.").first.wait_for()
        page.locator(".st-key-sequence .js-plotly-plot text").first.wait_for()
        page.get_by_text("data.py:5 next").first.wait_for()
        page.get_by_text("No dump of rank 2.").first.wait_for()


def test_without_an_address_a_hang_is_chosen_from_the_list(browser: Any, diagnosed: str) -> None:
    with opened(browser, f"{diagnosed}/hang") as page:
        page.get_by_text("No hang is chosen.").first.wait_for()
        cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
        assert page.locator(".ss-cases li *").evaluate_all(cut) == 0
        drawn(page)
        case = page.locator(".ss-cases a").first
        until(case.click, lambda: page.wait_for_url("**/hang?at=*", timeout=20_000))
        page.get_by_role("heading", name=re.compile("^Each rank")).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/network", "/network?show=ring+0", WATCHDOG, RECORDER])
def test_the_pages_are_accessible(browser: Any, diagnosed: str, path: str, scheme: str) -> None:
    """No violation of axe-core's rules; text on charts, which axe skips, has a contrast of 4.5 or more."""
    with opened(browser, f"{diagnosed}{path}", scheme=scheme) as page:
        assert_chart_text_stands_out(page, scheme)
        assert_accessible(page)
