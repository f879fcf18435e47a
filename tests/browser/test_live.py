"""What changes on screen without an interaction: running jobs, the notice of a new version, and the last visit's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import serve
from tests.browser.visits import opened, settled
from tests.dashboard.store_rows import file_row, run_row, step_rows, write_real_store

pytestmark = pytest.mark.slow


def publish(home: Path, version: int, log: Path, steps: int, *, failed: int = 0) -> None:
    """A version of a store with a running job and some failed ones."""
    (home / "store").mkdir(parents=True, exist_ok=True)
    running = run_row("live", source_path=str(log), run_dir=str(log.parent), status="running", last_step=steps)
    others = [run_row(f"bad{number}", status="oom") for number in range(failed)]
    file = home / "store" / f"results-{version}.duckdb"
    write_real_store(
        file,
        runs=[running | {"steps_planned": 600}, run_row("done"), *others],
        files=[file_row(str(log), mtime=log.stat().st_mtime)],
        steps=step_rows("live"),
    )
    link = home / "store" / "results.duckdb"
    link.unlink(missing_ok=True)
    link.symlink_to(file.name)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "sweep" / "train.log"
    path.parent.mkdir()
    path.write_text("step 6/600\n")
    return path


@pytest.fixture
def server(tmp_path: Path, log: Path) -> Iterator[str]:
    publish(tmp_path / "home", 1, log, 6)
    yield from serve(tmp_path / "home")


def test_a_page_that_is_left_alone_follows_what_runs(browser: Any, server: str, tmp_path: Path, log: Path) -> None:
    with opened(browser, f"{server}/live") as page:
        page.get_by_text("step 6 of 600").wait_for()
        place = page.locator(".ss-live a").bounding_box()
        log.write_text("step 6/600\nstep 301/600\n")
        page.get_by_text("step 301/600").wait_for()
        publish(tmp_path / "home", 2, log, 300, failed=3)
        page.get_by_text("step 300 of 600").wait_for()
        page.get_by_text("Version 2 is ready.").wait_for()
        assert page.locator(".ss-live a").bounding_box() == place
        page.get_by_role("button", name="Show version 2").click()
        page.get_by_text("Version 2 is ready.").wait_for(state="detached")


def test_the_next_visit_is_told_what_came_since(browser: Any, server: str, tmp_path: Path, log: Path) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    first = context.new_page()
    first.goto(server)
    settled(first)
    first.wait_for_function("Object.keys(localStorage).some(key => key.startsWith('sweepscope.visit.'))")
    assert first.get_by_text("Since your last visit").count() == 0
    first.close()
    publish(tmp_path / "home", 2, log, 300, failed=3)
    second = context.new_page()
    second.goto(server)
    second.get_by_text("3 new runs").wait_for()
    assert second.get_by_text("3 of them failed").count() == 1
    context.close()
