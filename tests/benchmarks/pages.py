"""Every page over one home in Chromium: seconds, DOM nodes, the renderer's processor time, console errors, memory.

`python -m tests.benchmarks.pages HOME` prints a line per page. `first` is a tab of its own on a server that was just
started for that page, `again` the same page in another new tab (answers kept), `filter` one more filter from there.
Figures are of the clock, so a quiet machine is wanted. Nothing is asserted: machines differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sweepscope.dashboard.navigation import PAGES, Entry
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.visits import opened, settled
from tests.screenshots import selections, served

SESSIONS = 5
_FILTER = "?framework=nanotron"
"""A filter that most pages take, as a link carries it."""


@dataclass
class Visit:
    """What one visit of a page cost: seconds until it was settled, elements, seconds of the renderer's processor."""

    seconds: float
    nodes: int
    renderer_s: float
    complaints: list[str] = field(default_factory=list)


def visit(browser: Any, url: str) -> Visit:
    """A page in a tab with nothing in its memory, until its script has ended."""
    with opened(browser, "about:blank", is_settled=False) as tab:
        devtools = tab.context.new_cdp_session(tab)
        devtools.send("Performance.enable")  # it counts from here on
        begin = time.perf_counter()
        tab.goto(url)
        settled(tab)
        seconds = time.perf_counter() - begin
        tab.wait_for_load_state("networkidle")
        figures = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
        nodes = tab.evaluate("document.querySelectorAll('*').length")
    return Visit(seconds, nodes, figures["TaskDuration"])


def console_errors(browser: Any, url: str) -> list[str]:
    """What a page writes to the console as errors, failed requests included."""
    found: list[str] = []
    with opened(browser, url) as tab:
        tab.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
        tab.on("response", lambda answer: found.append(answer.url) if answer.status >= 400 else None)
        tab.reload()
        tab.wait_for_selector('[data-test-script-state="notRunning"]', state="attached")
        tab.wait_for_load_state("networkidle")
    return found


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and its children, by Linux's own count."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = int(status.split("VmRSS:")[1].split()[0]) * 1024
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(map(resident_bytes, map(int, children)))


def measured(browser: Any, home: Path, entry: Entry, query: str) -> dict[str, object]:
    """The row of one page, on a server of its own."""
    with served(home) as (url, pid):
        visit(browser, f"{url}/sql")  # Python's modules are loaded once a server, not once a visit
        address = f"{url}/{entry.url}{query}"
        first, again = visit(browser, address), visit(browser, address)
        filtered = visit(browser, f"{url}/{entry.url}{_FILTER}") if not query else None
        complaints = console_errors(browser, address)
        with ExitStack() as tabs:
            for _ in range(SESSIONS):
                tabs.enter_context(opened(browser, address))
            memory = resident_bytes(pid)
    return {
        "page": entry.file,
        "first": round(first.seconds, 2),
        "again": round(again.seconds, 2),
        "filter": filtered and round(filtered.seconds, 2),
        "nodes": again.nodes,
        "renderer": round(again.renderer_s, 2),
        "MB": round(memory / 1e6),
        "complaints": "; ".join(sorted(set(complaints)))[:200],
    }


def main() -> int:
    """0 when every page was visited."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pages", description=__doc__)
    parser.add_argument("home", type=Path, help="a home with a published store, as of tests.benchmarks.large_store")
    parser.add_argument("--page", action="append", choices=[page.file for page in PAGES], help="instead of all")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chosen = selections(args.home)
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for entry in PAGES:
            if entry.file in (args.page or [entry.file]):
                rows.append(measured(browser, args.home, entry, chosen.get(entry.file, "")))
                sys.stdout.write(f"{rows[-1]}\n")
                sys.stdout.flush()
        browser.close()
    with pl.Config(tbl_rows=-1, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, fmt_str_lengths=90):
        sys.stdout.write(f"{pl.DataFrame(rows, infer_schema_length=None)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
