"""The page on the network with findings, curves and hangs, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.accessibility import assert_accessible, assert_chart_text_stands_out
from tests.browser.conftest import serve
from tests.browser.test_dashboard import opened
from tests.dashboard.store_rows import make_real_home, run_row
from tests.nccl_rows import bench_row, communicator_row, hang_row, link_row, nccl_file_row

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard over a sweep of which one run uses sockets and two collectives hung."""
    home = make_real_home(
        tmp_path_factory.mktemp("network") / "home",
        nccl_files=[nccl_file_row("a"), nccl_file_row("b", nccl_env="NCCL_IB_DISABLE=1")],
        nccl_links=[link_row("a"), link_row("b", transport="NET/Socket", line_no=77)],
        nccl_communicators=[communicator_row(name, init_time_s=2.0) for name in ("a", "b")],
        nccl_bench=[
            bench_row(name, nranks=8 * nodes, num_nodes=nodes, message_bytes=2**power, line_no=10 * nodes + power)
            for name in ("a", "b") for nodes in (1, 2, 4) for power in (10, 20, 33)
        ],
        nccl_hangs=[
            hang_row("b"),
            hang_row("b", seq=7, suspect=None, suspect_reason="not determinable: all 8 ranks entered", line_no=960,
                     ranks_reporting="0,1,2,3,4,5,6,7", ranks_silent=None, is_first=False),
        ],
        runs=[run_row("rb", source_path="/logs/b.log")],
    )  # fmt: skip
    yield from serve(home)


def test_a_finding_leads_to_its_run_and_the_operation_stays_in_the_address(browser: Any, network: str) -> None:
    with opened(browser, f"{network}/network?sweep=sweep") as page:
        page.wait_for_selector(".js-plotly-plot")
        page.get_by_text("NCCL_IB_DISABLE=1 is set").first.click()
        page.wait_for_url("**/run?run=rb*")


def test_choosing_a_hang_shows_its_ranks(browser: Any, network: str) -> None:
    with opened(browser, f"{network}/network") as page:
        page.get_by_text("Suspect: rank 3.").first.wait_for()
        canvas = page.locator('.st-key-hangs canvas[data-testid="data-grid-canvas"]').first
        canvas.click(position={"x": 120, "y": 32 * 2 + 16}, force=True)  # the second row, below the header
        page.get_by_text("Not determinable.").first.wait_for()
        page.get_by_text("waited in this one: 8").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_full_page_is_accessible(browser: Any, network: str, scheme: str) -> None:
    """No serious violation of axe-core's rules; text on charts, which axe skips, has a contrast of 4.5 or more."""
    with opened(browser, f"{network}/network", scheme=scheme) as page:
        assert_chart_text_stands_out(page, scheme)
        assert_accessible(page)
