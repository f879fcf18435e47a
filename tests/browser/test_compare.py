"""The ways to a comparison, each counted in clicks from the first page, and one of them without a mouse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.accessibility import assert_accessible, assert_chart_text_stands_out
from tests.browser.visits import arrived, drawn, follow, opened, settled

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


class Clicks:
    """A reader who counts."""

    def __init__(self, page: Any) -> None:
        self.page, self.made = page, 0

    def on(self, target: Any, **how: Any) -> None:
        drawn(self.page)
        target.first.click(**how)
        self.made += 1
        settled(self.page)

    def follow(self, link: Any, title: str) -> None:
        """Follows a link to the page of this title."""
        follow(self.page, link, title)
        self.made += 1

    def to(self, name: str) -> None:
        """Follows the sidebar. The page before looks settled, too, until the next one has begun."""
        sidebar(self.page, name).click()
        self.made += 1
        arrived(self.page, name)


def sidebar(page: Any, name: str) -> Any:
    return page.locator("[data-testid=stSidebar]").get_by_role("link", name=name, exact=True)


def answer(page: Any) -> str:
    return str(page.locator(".ss-answer").inner_text()).replace("\xa0", " ")


def test_best_layout_of_a_cell_and_why_the_second_lost_within_four_clicks(browser: Any, demo: str) -> None:
    with opened(browser, demo) as page:
        reader = Clicks(page)
        reader.to("Best configurations")
        page.wait_for_selector(".js-plotly-plot .annotation-text")
        cell = page.locator(".js-plotly-plot .annotation-text", has_text="36.3 %")
        reader.on(cell, force=True)
        page.get_by_text("Llama 8.86B on 16 nodes").first.wait_for()
        reader.follow(page.get_by_role("link", name="Compare with the runner-up"), "Compare")
        sentence = answer(page)
        assert sentence.startswith("A is 5.8 % ahead of B, within the noise")
        assert re.search(r"DP16 TP8 saves [\d.]+ points of DP communication and loses [\d.]+ to TP", sentence)
        page.locator(".st-key-difference .js-plotly-plot .annotation-text").first.wait_for()
        assert reader.made <= 4


def test_best_layout_of_a_cell_and_why_the_second_lost_without_a_mouse(browser: Any, demo: str) -> None:
    with opened(browser, demo) as page:
        sidebar(page, "Best configurations").focus()
        page.keyboard.press("Enter")
        arrived(page, "Best configurations")
        for label, option in (("Model", "Llama 8.86B"), ("Nodes", "16")):
            page.get_by_role("combobox", name=re.compile(label)).first.focus()
            page.keyboard.press("ArrowDown")
            page.get_by_role("option").first.wait_for()
            page.keyboard.type(option)
            page.keyboard.press("Enter")
            settled(page)
        page.get_by_text("Llama 8.86B on 16 nodes").first.wait_for()
        page.get_by_role("link", name="Compare with the runner-up").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/compare?runs=*")
        arrived(page, "Compare")
        assert answer(page).startswith("A is 5.8 % ahead of B, within the noise")


def test_own_best_against_llama_405b_and_deepseek_v3_within_three_clicks(browser: Any, demo: str) -> None:
    with opened(browser, demo) as page:
        reader = Clicks(page)
        reader.to("Frontier")
        reader.follow(page.get_by_role("link", name=re.compile("the best here on")), "Compare")
        sentence = answer(page)
        assert "reaches the most" in sentence
        assert re.search(r"Llama 3\.1 405B \(B\) by \d", sentence), "in points"
        layouts = page.locator(".ss-beside tbody tr", has_text=re.compile(r"^TP")).first.inner_text().split("\t")
        assert layouts[2:4] == ["8", "1"], "and in layout: TP of Llama 3.1 405B and of DeepSeek-V3"
        assert reader.made <= 3


def test_any_two_runs_within_four_clicks(browser: Any, demo: str) -> None:
    with opened(browser, demo) as page:
        reader = Clicks(page)
        reader.to("Runs")
        canvas = page.locator('.st-key-runs_table canvas[data-testid="data-grid-canvas"]')
        for row in (3, 5):
            reader.on(canvas, position={"x": 16, "y": 32 * row + 16}, force=True)
        reader.follow(page.get_by_role("link", name="Compare 2 runs"), "Compare")
        page.get_by_role("columnheader", name=re.compile("^B ")).first.wait_for()
        assert reader.made <= 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_runs_are_compared_without_a_mouse_and_accessibly(browser: Any, own: str, scheme: str) -> None:
    with opened(browser, own, scheme=scheme) as page:
        sidebar(page, "Compare").focus()
        page.keyboard.press("Enter")
        page.get_by_text("No runs are chosen.").wait_for()
        settled(page)
        assert_accessible(page)
        for chosen in (1, 2):
            page.get_by_role("combobox", name=re.compile("Add a run")).focus()
            page.keyboard.press("ArrowDown")  # opens the list, in which own runs are first
            page.get_by_role("option").first.wait_for()
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
            page.wait_for_url(re.compile(r"runs=\w+" + r"(%2C|,)\w+" * (chosen - 1)))
            settled(page)
        page.locator(".st-key-curves .js-plotly-plot").first.wait_for()
        assert_chart_text_stands_out(page, scheme)
        assert_accessible(page)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_chart_is_saved_under_a_name_that_tells_page_and_filters(browser: Any, demo: str, ending: str) -> None:
    with opened(browser, f"{demo}/best?model=Llama+8.86B&nodes=16&picture={ending}") as page:
        chart = page.locator(".st-key-heat .js-plotly-plot")
        chart.hover(force=True)
        with page.expect_download() as download:
            chart.locator(".modebar-btn").first.click(force=True)
        name = f"sweepscope-best-configurations-heat-model-Llama-8.86B-nodes-16.{ending}"
        assert download.value.suggested_filename == name
        assert not page.locator(".st-key-heat .gtitle").is_visible(), "the page's head says it"
        if ending == "svg":
            picture = Path(download.value.path()).read_text(encoding="utf-8")
            assert re.search(r"Best configurations · published, [\d,]+ of [\d,]+ published runs", picture)
