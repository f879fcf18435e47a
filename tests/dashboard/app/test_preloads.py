"""What the first document has the browser load at once: the elements of most pages, and what they import."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from sweepscope.dashboard.app.preloads import preloaded


def test_an_element_comes_with_all_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "Html.a1.js").write_text('import{t}from"./one.b2.js";import"./two.c3.js";export default t')
    (tmp_path / "one.b2.js").write_text('import{u}from"./Html.a1.js"; /* a circle */ from"./gone.js"')
    (tmp_path / "two.c3.js").write_text("export {}")
    (tmp_path / "Video.d4.js").write_text('from"./one.b2.js"')
    assert {path.name for path in preloaded(tmp_path)} == {"Html.a1.js", "one.b2.js", "two.c3.js"}


def test_streamlit_names_its_chunks_as_expected() -> None:
    found = preloaded(Path(st.__file__).parent / "static" / "static" / "js")
    assert {path.name.split(".")[0] for path in found} >= {"PlotlyChart", "Html", "PageLink", "Selectbox"}
    assert found[0].name.startswith("PlotlyChart.")  # the largest is asked for first


def test_a_build_with_other_names_has_none(tmp_path: Path) -> None:
    assert preloaded(tmp_path) == []
