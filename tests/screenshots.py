"""`python -m tests.screenshots`: every page, light and dark, over the demo, a small sweep and an empty store.

Homes of one's own: `--home NAME=DIR`. The pictures are `OUT/NAME/PAGE-SCHEME.png`, two screens high.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sweepscope.dashboard.navigation import PAGES, Entry
from sweepscope.dashboard.widgets import urls
from sweepscope.pipeline.commands.servers import dashboard_process, stop_all, wait_until_served
from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current
from tests.browser.conftest import CHROMIUM, FLAGS, free_port
from tests.browser.visits import opened
from tests.paths import CORPUS

HEIGHT = 1800
_ARE_DRAWN = """
!document.querySelector('[data-testid=stSkeleton]')
&& [...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(one => one.querySelector('.main-svg'))
"""
_BEST_RUNS = """
SELECT run_id, runner_up_run_id FROM best_configs
ORDER BY origin = 'published', runner_up_run_id IS NULL, runs_completed DESC LIMIT 1
"""
SCHEMES = ("light", "dark")


def homes(scratch: Path) -> dict[str, Path]:
    """The demo, the sweep of the corpus where there is one, and an empty home, by name."""
    found = {"demo": scratch / "demo", "empty": scratch / "empty"}
    _sweepscope("demo", "--no-serve", "--home", str(found["demo"]))
    found["empty"].mkdir()
    sweep = CORPUS / "picotron_sweep"
    if sweep.is_dir():
        found["picotron"] = scratch / "picotron"
        _sweepscope("ingest", str(sweep), "--home", str(found["picotron"]))
    else:
        sys.stdout.write(f"no pictures of a small sweep: {sweep} is not there (SWEEPSCOPE_CORPUS)\n")
    return found


def _sweepscope(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "sweepscope", *arguments], check=True, stdout=subprocess.DEVNULL)


def selections(home: Path) -> dict[str, str]:
    """Query of the pages that show something chosen: by file of the page; of an empty home, none."""
    try:
        with connect(current(home)) as connection:
            runs = connection.sql(_BEST_RUNS).fetchall()
            hangs = connection.sql("SELECT source_path, line_no FROM nccl_hangs ORDER BY ALL LIMIT 1").fetchall()
            snapshots = connection.sql(
                "SELECT source_path, device FROM memory_snapshots ORDER BY ALL LIMIT 1"
            ).fetchall()
    except StoreError:
        return {}
    ids = [run for row in runs for run in row if run]
    addresses = [urls.run_url(run) for run in ids[:1]] + ([urls.compare_url(ids)] if len(ids) > 1 else [])
    addresses += [urls.hang_url(*row) for row in hangs] + [urls.snapshot_url(*row) for row in snapshots]
    return {page: f"?{query}" for page, _, query in (address.strip("/").partition("?") for address in addresses)}


def take(browser: Any, home: Path, folder: Path, pages: Sequence[Entry], schemes: Sequence[str]) -> None:
    """Pictures of a home's pages. Raises playwright's errors where a page does not come to rest."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = selections(home)
    with served(home) as (url, _):
        for scheme in schemes:
            for page in pages:
                address = f"{url}/{page.url}{chosen.get(page.file, '')}"
                with opened(browser, address, scheme=scheme, height=HEIGHT) as tab:
                    tab.wait_for_function(_ARE_DRAWN)
                    tab.screenshot(path=str(folder / f"{page.file}-{scheme}.png"))
        sys.stdout.write(f"{folder}: {len(pages) * len(schemes)} pictures\n")


@contextmanager
def served(home: Path) -> Iterator[tuple[str, int]]:
    """Address and process of a dashboard over `home`, stopped at the end."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = dashboard_process(Home.resolve(str(home)), port, "127.0.0.1")
    try:
        wait_until_served({url: process})
        yield url, process.pid
    finally:
        stop_all([process])


def main() -> int:
    """0 when all pictures were taken."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/screenshots"), help="folder (default: %(default)s)")
    parser.add_argument("--home", action="append", metavar="NAME=DIR", help="instead of the three; may be repeated")
    parser.add_argument("--page", action="append", choices=[page.file for page in PAGES], help="instead of all")
    parser.add_argument("--scheme", action="append", choices=SCHEMES, help="instead of both")
    args = parser.parse_args()
    if CHROMIUM is None:
        sys.stderr.write("There is no Chromium on this machine: install Debian's chromium, or set CHROMIUM.\n")
        return 1
    from playwright.sync_api import sync_playwright

    pages = [page for page in PAGES if page.file in (args.page or [page.file])]
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        chosen = dict(given.split("=", 1) for given in args.home or []) or homes(Path(scratch))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for name, home in chosen.items():
            take(browser, Path(home), args.out / name, pages, args.scheme or SCHEMES)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
