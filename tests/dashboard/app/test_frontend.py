"""Scripts are named as the frontend's folder has them, and none that it lacks."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from sweepscope.dashboard.app.frontend import CHARTS, FIRST, FONT, tags
from sweepscope.dashboard.navigation import PAGES
from tests.dashboard.app_pages.test_data_pages import look_at
from tests.dashboard.store_rows import make_real_home, run_row, step_rows

STATIC = Path(st.__file__).parent / "static"


def test_each_script_of_the_installed_frontend_is_there() -> None:
    named = re.findall(r'(?:src|href)="\./([^"]+)"|import\("\./([^"]+)"\)', tags(STATIC / "static"))
    paths = [one or other for one, other in named]
    assert [Path(path).name.partition(".")[0] for path in paths] == [FONT, *FIRST, CHARTS, CHARTS]
    assert all((STATIC / path).is_file() for path in paths)


def test_what_a_frontend_lacks_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "Html.abc.js").touch()
    assert tags(tmp_path) == '<script type="module" crossorigin src="./static/js/Html.abc.js"></script>'
    assert tags(tmp_path / "nowhere") == ""


def test_a_page_without_charts_gets_nothing_that_draws_them(tmp_path: Path) -> None:
    without = [entry for entry in PAGES if not entry.has_charts]
    assert CHARTS in tags(STATIC / "static", "best")
    home = make_real_home(tmp_path / "home", runs=[run_row()], steps=step_rows())
    for entry in without:
        assert CHARTS not in tags(STATIC / "static", entry.url)
        assert not look_at(home, entry.file).get("plotly_chart"), entry.title
