"""The pages on memory in a real browser: a click on a track, zooming, accessibility in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.hardware import load_accelerators
from tests.browser.accessibility import assert_accessible, assert_chart_text_stands_out
from tests.browser.conftest import serve
from tests.browser.test_dashboard import opened
from tests.dashboard.store_rows import event_row, make_real_home, run_row
from tests.memory_rows import GIB, OOM_LINE, memory_estimate, memory_tables, trained

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SNAPSHOT = "/snapshot?file=%2Flogs%2Fc1%2Frank0.pickle&device=0"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard over five completed runs, one that failed, and a snapshot."""
    runs = [
        run_row(f"c{at}", layout=f"DP16 TP{at}", accelerator="H100-SXM-80GB",
                mem_peak_allocated_bytes=(40 + at) * GIB, mem_peak_reserved_bytes=(44 + at) * GIB)
        for at in range(1, 6)
    ]  # fmt: skip
    nothing = {"mem_peak_allocated_bytes": None, "mem_peak_reserved_bytes": None}
    runs.append(run_row("f1", status="oom", accelerator="H100-SXM-80GB", **nothing))
    home = make_real_home(
        tmp_path_factory.mktemp("memory") / "home", runs=runs, events=[event_row("f1", kind="oom", text=OOM_LINE)],
        estimates=[memory_estimate(f"c{at}", activations=20 + 2 * at) for at in range(1, 6)],
        accelerators=load_accelerators().to_dicts(), **memory_tables("/logs/c1", trained(layers=4)),
    )  # fmt: skip
    yield from serve(home)


def test_a_click_on_a_track_shows_that_run(browser: Any, served: str) -> None:
    with opened(browser, f"{served}/memory") as page:
        page.get_by_text("Would fit with expandable_segments").first.wait_for()
        plot = page.locator(".st-key-peaks .js-plotly-plot .nsewdrag").first
        box = plot.bounding_box()
        plot.click(position={"x": box["width"] / 3, "y": box["height"] * 5.5 / 6}, force=True)
        page.wait_for_url("**run=c1*")
        page.get_by_text("of the card").first.wait_for()


def test_a_snapshot_opens_from_the_page_on_memory_and_keeps_its_instant(browser: Any, served: str) -> None:
    with opened(browser, f"{served}/memory") as page:
        page.get_by_text("c1/rank0.pickle").first.click()
        page.wait_for_url("**/snapshot?*")
        page.get_by_text("of it were optimizer states").first.wait_for()
        handle = page.get_by_role("slider", name="What was alive after so many events")
        handle.first.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**at=*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/memory", SNAPSHOT])
def test_the_pages_are_accessible(browser: Any, served: str, path: str, scheme: str) -> None:
    """No serious violation of axe-core's rules; text on axes, which axe skips, has a contrast of 4.5 or more."""
    with opened(browser, f"{served}{path}", scheme=scheme) as page:
        assert_chart_text_stands_out(page, scheme)
        assert_accessible(page)
