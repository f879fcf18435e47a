"""The static site: what it holds, that its links lead somewhere, that it loads nothing, and that a browser draws it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pytest

from sweepscope.dashboard.report import write_site
from sweepscope.pipeline.errors import UsageError
from tests.browser.evidence import evidence
from tests.dashboard.app_pages.grid_home import make_home, small_sweep
from tests.dashboard.store_rows import make_real_home

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    home = make_home(folder / "home", small_sweep())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWEEPSCOPE_HOME", str(home))
        written = write_site.write(folder / "out", most_runs=3)
    assert written["origins"]
    return folder / "out"


def links(page: Path) -> list[Path]:
    found = re.findall(r'(?:href|src)="(?!https?:|#)([^"]+)"', page.read_text(encoding="utf-8"))
    return [(page.parent / unquote(link)).resolve() for link in found]


def test_every_link_leads_to_a_file_of_the_site(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert {page.name for page in pages} >= {"index.html", "grid-1.html", "runs.html", "failures.html"}
    assert len([page for page in pages if page.name.startswith("run-")]) == 3
    for page in pages:
        for target in links(page):
            assert target.is_file(), f"{page.name} leads to {target}"
            assert target.is_relative_to(site)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', text)
        assert page.parent == site or "default-src 'none'" in text


def figures_of(page: Path) -> dict[str, Any]:
    found = re.search(r'id="figures">(.*?)</script>', page.read_text(encoding="utf-8"))
    return dict(json.loads(found[1])) if found else {}


def test_each_winner_is_set_against_its_runner_up(site: Path) -> None:
    folder = site / "measured"
    assert "compare.html" in (folder / "index.html").read_text(encoding="utf-8")
    cells = list(folder.glob("compare-*.html"))
    assert len(cells) == 2, "of three cells, one has no result"
    texts = [page.read_text(encoding="utf-8").replace("\xa0", " ") for page in cells]
    assert sum("A is 2.6 % faster than B" in text for text in texts) == 1, "40,000 over 39,000"
    assert all("DP8 TP1" in text and "DP4 TP2" in text for text in texts if "2.6 %" in text)


def test_memory_and_network_have_pages_where_files_tell_of_them(site: Path, tmp_path: Path) -> None:
    assert not (site / "measured" / "memory.html").exists() or figures_of(site / "measured" / "memory.html")
    assert not (site / "measured" / "network.html").exists()
    rows = {name: rows for name, rows in evidence().items() if name != "estimates"}  # they estimate memory alone
    home = make_real_home(tmp_path / "home", **rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWEEPSCOPE_HOME", str(home))
        write_site.write(tmp_path / "out", most_runs=0, most_grids=0)
    memory, network = (next((tmp_path / "out").glob(f"*/{name}.html")) for name in ("memory", "network"))
    assert "ran out of GPU memory" in memory.read_text(encoding="utf-8")
    assert figures_of(memory)
    text = network.read_text(encoding="utf-8")
    assert "Findings, the costly ones first" in text
    assert "Hangs" in text
    assert figures_of(network)


def test_charts_say_what_was_chosen(site: Path) -> None:
    figures = figures_of(site / "measured" / "grid-1.html")
    assert figures
    for figure in figures.values():
        assert "measured" in figure["layout"]["title"]["subtitle"]["text"]
        assert "store version" in figure["layout"]["title"]["subtitle"]["text"]


def test_the_rows_lie_beside_the_pages(site: Path) -> None:
    runs = pl.read_parquet(site / "measured" / "data" / "runs.parquet")
    assert runs.height == len(small_sweep())
    assert set(runs["origin"]) == {"measured"}


def test_an_export_is_replaced_and_other_files_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(make_home(tmp_path / "home", small_sweep())))
    out = tmp_path / "out"
    write_site.write(out, most_runs=1)
    (out / "measured" / "old.html").touch()
    write_site.write(out, most_runs=1)
    assert not (out / "measured" / "old.html").exists()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "thesis.tex").touch()
    with pytest.raises(UsageError, match="holds other files"):
        write_site.write(kept)
    assert [file.name for file in kept.iterdir()] == ["thesis.tex"]
    with pytest.raises(UsageError, match="shows no simulated runs"):
        write_site.write(tmp_path / "other", origin="simulated")
    assert not [file for file in tmp_path.iterdir() if "partial" in file.name]


def test_a_browser_draws_it_from_the_disk(site: Path, browser: Any) -> None:
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.wait_for_url("**/measured/index.html")
    page.get_by_role("link", name="Best configurations").first.click()
    page.wait_for_selector(".main-svg")
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download() as download:
        page.locator('[data-title="Save as SVG"]').first.click()
    svg = Path(download.value.path()).read_text(encoding="utf-8")
    context.close()
    assert "store version" in svg, "what was chosen is printed into the picture"
    assert complaints == []
