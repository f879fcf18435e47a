"""Questions of somebody who opens the dashboard for the first time, each counted in clicks from the first page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sweepscope.pipeline.store import published
from tests.browser.conftest import serve
from tests.browser.test_compare import Clicks, answer
from tests.browser.visits import drawn, opened, settled, until_answer
from tests.conftest import built_once, sweepscope

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def priced(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard after `sweepscope demo` and one price."""

    def build(folder: Path) -> None:
        shutil.copytree(demo_home, folder / "home", symlinks=True)
        sweepscope("price", "set", "H100-SXM-80GB", "2.50", "--home", folder / "home")

    yield from serve(built_once(tmp_path_factory, "priced", build) / "home")


def choose(reader: Clicks, label: str, text: str) -> None:
    """Opens a selectbox by one click; the option is typed."""
    box = reader.page.get_by_role("combobox", name=re.compile(label))
    reader.on(box)
    box.first.fill(text)
    reader.page.keyboard.press("Enter")
    settled(reader.page)


def test_what_8_to_64_nodes_cost_a_model_per_token_and_per_hour_within_three_clicks(browser: Any, priced: str) -> None:
    with opened(browser, priced) as page:
        reader = Clicks(page)
        reader.to("Scaling")
        choose(reader, "Lines", "strategies of Llama 3.57B")
        choose(reader, "Baseline", "8 nodes")
        page.wait_for_url("**baseline=8*")
        settled(page)
        assert re.search(
            r"From 8 to 64 nodes a million tokens of Llama 3\.57B with [DTP+]+ go from \$[\d.]+ to \$[\d.]+, "
            r"an hour from \$160\.00 to \$1,280\.",
            answer(page),
        )
        assert reader.made <= 3


def test_what_failed_what_it_cost_and_what_to_submit_again_within_three_clicks(browser: Any, priced: str) -> None:
    with opened(browser, priced) as page:
        reader = Clicks(page)
        reader.to("Failures & cost")
        before = page.locator(".ss-answer").inner_text()
        reader.on(page.get_by_role("link", name="simulated results"))
        until_answer(page, before, is_other=True)
        text = page.locator(".stMain").inner_text().replace("\xa0", " ")
        assert re.search(r"\d+ of \d+|\d+ %", answer(page)), "what failed"
        assert re.search(r"GPU-hours on failures\s+[\d.,]+\s+\$[\d.,]+", text), "what it cost"
        assert "Worth submitting again" in text
        reader.follow(page.get_by_role("link", name=re.compile("out of memory|OutOfMemory")), "Run")
        # with which change
        page.get_by_text(re.compile("^(Needs|Would fit|Fragmented|Other processes)")).first.wait_for()
        assert reader.made <= 3


def test_13b_on_32_nodes_without_a_run_and_what_the_batch_does_within_four_clicks(browser: Any, demo: str) -> None:
    with opened(browser, demo) as page:
        reader = Clicks(page)
        reader.to("Explorer & advisor")
        choose(reader, "Model", "Llama 2 13B")
        choose(reader, "Nodes", "32")
        shown = page.locator(".ss-answer", has_text=re.compile("32.nodes"))
        shown.filter(has_text="Llama 2 13B should train fastest with").wait_for()
        reader.on(page.get_by_role("radio", name="Where the layout changes"))
        page.get_by_text(re.compile(r"On 256 GPUs the smallest batch that keeps 90.% is")).first.wait_for()
        assert reader.made <= 4


SHARED = {
    "a": "best?model=Llama+8.86B&nodes=16",
    "b": "scaling?lines=Llama+3.57B&baseline=8",
    "c": "failures?origin=simulated",
    "d": "frontier",
    "e": "explorer?model=Llama+2+13B&nodes=32",
    "f": "",
}
"""Where each of the paths above ends; the last one's address is that of two runs."""


@pytest.mark.parametrize("path", SHARED)
def test_each_answer_is_shared_as_a_link_a_picture_and_an_offline_file(
    browser: Any, demo: str, demo_home: Path, tmp_path: Path, path: str
) -> None:
    address = SHARED[path] or _two_runs(demo_home)
    with opened(browser, f"{demo}/{address}") as page:
        drawn(page)
        sentence = answer(page)
        chart = page.locator(".js-plotly-plot").first
        chart.hover(force=True)
        with page.expect_download() as picture:
            chart.locator(".modebar-btn").first.click(force=True)
        assert picture.value.suggested_filename.endswith(".png")
        page.get_by_role("button", name=re.compile("Share")).click()
        link = page.locator("[data-testid=stPopoverBody] code").first.inner_text()
        with page.expect_download() as report:
            page.get_by_role("button", name="Offline report").click()
        file = tmp_path / report.value.suggested_filename
        report.value.save_as(file)
    shared = urlsplit(link)
    with opened(browser, f"{demo}{shared.path}?{shared.query}") as page:
        assert answer(page) == sentence
    html = file.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']https?:", html), "it needs no network"
    with opened_file(browser, file) as page:
        assert sentence in page.locator("section").first.inner_text().replace("\xa0", " ")
        page.locator(".js-plotly-plot .main-svg").first.wait_for()


def _two_runs(home: Path) -> str:
    """Address of the comparison of a winner and its runner-up."""
    asked = (
        "SELECT run_id, runner_up_run_id AS other FROM best_configs WHERE runner_up_run_id IS NOT NULL "
        "AND origin = 'published' ORDER BY runs_tried DESC, run_id LIMIT 1"
    )
    with published.connect(published.current(home)) as store:
        return f"compare?runs={'%2C'.join(store.execute(asked).fetchall()[0])}"


def test_what_scaling_costs_is_answered_in_a_store_without_prices(
    browser: Any, demo_home: Path, tmp_path: Path
) -> None:
    """The page that misses the price takes it; its answer is in dollars from then on."""
    shutil.copytree(demo_home, tmp_path / "home", symlinks=True)
    for url in serve(tmp_path / "home"):
        with opened(browser, url) as page:
            reader = Clicks(page)
            reader.to("Scaling")
            assert "$" not in answer(page)
            reader.on(page.get_by_role("button", name=re.compile("Price")))
            field = page.get_by_role("spinbutton", name="$ per GPU-hour")
            field.fill("2.50")
            field.press("Enter")
            head = page.locator(".ss-answer", has_text=re.compile(r"a million tokens of .+ go from \$[\d.]+ to \$"))
            head.first.wait_for()
            assert reader.made <= 3


@contextmanager
def opened_file(browser: Any, file: Path) -> Iterator[Any]:
    """A file in a tab without a network."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    yield page
    context.close()
