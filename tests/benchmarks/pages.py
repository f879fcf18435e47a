"""Every page over one home in Chromium: seconds, DOM nodes, the renderer's processor time, console errors, memory.

`python -m tests.benchmarks.pages HOME` prints a line per page. `cold` is a visit in the moment that a new server
answers, before it has prepared itself (`app.rehearsal`), until the page's script has ended. All others are of a second
server that has: `first` is a tab of its own, until the script has ended, and `answer` until its headline is on screen;
`again` the same page in another new tab, which loads the frontend once more; `page` a click on it in the sidebar of an
open tab; `filter` a choice on the page once its charts are drawn: the next option of its first selectbox, on Overview
another grid. These are seconds of the clock, so a quiet machine is wanted. `server` is the server's processor time for
`cold`, `first`, `page` and `filter`; `nodes`, `renderer` and `shift` (the browser's sum of layout shifts) are of
`again`, once its charts are drawn. Nothing is asserted: machines differ.

The row `bare` is a page of Streamlit with one chart and nothing else (`bare_page`): the share of all that is not ours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sweepscope.dashboard.navigation import PAGES, Entry
from sweepscope.pipeline.commands.servers import start, stop_all, wait_until_served
from tests.browser.conftest import CHROMIUM, FLAGS, free_port
from tests.browser.visits import COUNT_SHIFTS, SHIFTS, drawn, go, opened, settled, until_answer
from tests.screenshots import selections, served

SESSIONS = 5
_REST_SHARE = 0.05
"""Of the processor, up to which a server is taken to be at rest."""


@dataclass
class Visit:
    """What one visit cost: seconds until headline and end, elements, the renderer's processor time, layout shifts."""

    answer_s: float
    seconds: float
    nodes: int
    renderer_s: float
    shift: float
    complaints: list[str] = field(default_factory=list)


def visit(browser: Any, url: str) -> Visit:
    """A page in a tab with nothing in its memory, until its script has ended."""
    with opened(browser, "about:blank", is_settled=False) as tab:
        devtools = tab.context.new_cdp_session(tab)
        devtools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})  # processor time, whatever else runs
        devtools.send("Performance.enable")  # it counts from here on
        tab.add_init_script(COUNT_SHIFTS)
        begin = time.perf_counter()
        tab.goto(url)
        tab.wait_for_selector(".ss-answer")
        answer_s = time.perf_counter() - begin
        settled(tab)
        seconds = time.perf_counter() - begin
        drawn(tab)
        tab.wait_for_load_state("networkidle")
        figures = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
        nodes = tab.evaluate("document.querySelectorAll('*').length")
        shift = tab.evaluate(SHIFTS)
    return Visit(answer_s, seconds, nodes, figures["TaskDuration"], shift)


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


def steps_of_a_reader(browser: Any, url: str, entry: Entry, pid: int) -> Iterator[tuple[float, float]]:
    """Seconds, and the server's processor time: of going to a page by the sidebar, and of one choice on it."""
    with opened(browser, f"{url}/sql") as tab:
        yield timed(pid, lambda: go(tab, entry))
        drawn(tab)  # else the choice waits until the charts of the page before it are drawn
        tab.evaluate("() => new Promise(done => requestIdleCallback(() => done()))")
        before, head = tab.url, tab.locator(".ss-answer").first.inner_text()
        if entry.file == "overview":
            choose = tab.locator(".ss-list a[href^='./?origin']").first.click
        else:
            box = tab.locator(".stMain").get_by_role("combobox").first
            if not box.count():
                return
            box.focus()
            tab.keyboard.press("ArrowDown")  # opens the list at the option that is chosen
            tab.get_by_role("option").first.wait_for()
            tab.keyboard.press("ArrowDown")
            choose = partial(tab.keyboard.press, "Enter")

        def chosen() -> None:
            choose()
            tab.wait_for_function("before => location.href !== before", arg=before)
            if entry.file == "overview":  # a link changes the address at once
                until_answer(tab, head, is_other=True)
            settled(tab)

        yield timed(pid, chosen)


def bare(browser: Any) -> dict[str, object]:
    """The row of a page of Streamlit without anything of ours."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    script = str(Path(__file__).with_name("bare_page.py"))
    options = ("--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true")
    process = start("streamlit", "run", script, *options, environment={}, folder=Path("/"), stdout=subprocess.DEVNULL)
    try:
        wait_until_served({url: process})
        visit(browser, url)
        first, again = visit(browser, url), visit(browser, url)
        with opened(browser, url) as tab:
            box = tab.locator(".stMain").get_by_role("combobox").first
            box.focus()
            tab.keyboard.press("ArrowDown")
            tab.get_by_role("option").first.wait_for()
            tab.keyboard.press("ArrowDown")

            def chosen() -> None:
                tab.keyboard.press("Enter")
                tab.wait_for_function("document.querySelector('.ss-answer').innerText.startsWith('21')")
                settled(tab)

            seconds, _ = timed(process.pid, chosen)
    finally:
        stop_all([process])
    figures = {"first": first.seconds, "again": again.seconds, "filter": seconds, "renderer": again.renderer_s}
    return {"name": "bare", **{name: round(value, 2) for name, value in figures.items()}, "nodes": again.nodes}


def timed(pid: int, act: Callable[[], object]) -> tuple[float, float]:
    """Seconds that `act` takes, and those that the processor works for a process meanwhile."""
    begin, before = time.perf_counter(), processor_s(pid)
    act()
    return time.perf_counter() - begin, processor_s(pid) - before


def processor_s(pid: int) -> float:
    """Processor time of a process and its children, by Linux's own count."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(map(processor_s, _children(pid)))


def until_at_rest(pid: int, *, look_every_s: float = 1.0, looks: int = 4) -> None:
    """Waits until a process has worked next to nothing in several looks in a row."""
    before, quiet = processor_s(pid), 0
    while quiet < looks:
        time.sleep(look_every_s)
        now = processor_s(pid)
        quiet = quiet + 1 if now - before < _REST_SHARE * look_every_s else 0
        before = now


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and its children, by Linux's own count."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = int(status.split("VmRSS:")[1].split()[0]) * 1024
    return own + sum(map(resident_bytes, _children(pid)))


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measured(browser: Any, home: Path, entry: Entry, query: str) -> dict[str, object]:
    """The row of one page, on a server of its own."""
    server = []

    def counted_visit(address: str, pid: int) -> Visit:
        before = processor_s(pid)
        found = visit(browser, address)
        server.append(processor_s(pid) - before)
        return found

    with served(home) as (url, pid):
        cold = counted_visit(f"{url}/{entry.url}{query}", pid)
    with served(home) as (url, pid):
        until_at_rest(pid)
        address = f"{url}/{entry.url}{query}"
        first = counted_visit(address, pid)
        again = visit(browser, address)
        steps = [] if entry.is_hidden or entry.file == "sql" else list(steps_of_a_reader(browser, url, entry, pid))
        server += [cost for _, cost in steps]
        complaints = console_errors(browser, address)
        with ExitStack() as tabs:
            for _ in range(SESSIONS):
                tabs.enter_context(opened(browser, address))
            memory = resident_bytes(pid)
    return {
        "name": entry.file,
        "cold": round(cold.seconds, 2),
        "answer": round(first.answer_s, 2),
        "first": round(first.seconds, 2),
        "again": round(again.seconds, 2),
        "page": round(steps[0][0], 2) if steps else None,
        "filter": round(steps[1][0], 2) if steps[1:] else None,
        "server": " / ".join(f"{seconds:.2f}" for seconds in server),
        "nodes": again.nodes,
        "renderer": round(again.renderer_s, 2),
        "shift": round(again.shift, 3),
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
        rows.append(bare(browser))
        sys.stdout.write(f"{rows[-1]}\n")
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
