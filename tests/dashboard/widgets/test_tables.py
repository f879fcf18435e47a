"""Tables show what they hold: texts whole, and nothing that is something as 0."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest


def shown(**columns: list[Any]) -> dict[str, Any]:
    """The configuration of each column of a table, by heading."""

    def page(columns: dict[str, list[object]]) -> None:
        import polars as pl

        from sweepscope.dashboard.widgets import tables

        tables.table(pl.DataFrame(columns))

    app = AppTest.from_function(page, args=(columns,), default_timeout=120).run()
    assert not app.exception
    return dict(json.loads(app.dataframe[0].proto.columns))


def format_of(value: float) -> str:
    return str(shown(gpu_hours_lost=[91.2, value, None])["Lost, GPU·h"]["type_config"]["format"])


@pytest.mark.slow
def test_a_long_text_further_down_has_its_width() -> None:
    texts = ["DP1"] * 30 + ["DP64 TP8 PP16 VPP4 CP2 EP8 · GAS128 MBS2 · Z1 in 8 copies"]
    assert shown(layout=texts)["Layout"]["width"] >= 5.5 * len(texts[-1])


@pytest.mark.parametrize(
    "texts", [["DP1"] * 30, ["DP1 TP8"] + ["DP1"] * 30, ["/x"] * 30 + ["/scratch/" + "x" * 200], ["", None]]
)
def test_columns_that_are_whole_and_those_of_paths_are_left_to_the_table(texts: list[str]) -> None:
    assert shown(run_dir=texts).get("Run dir", {}).get("width") is None


@pytest.mark.parametrize(("value", "decimals"), [(0.5, 1), (0.05, 1), (0.04, 2), (0.004, 3), (1e-9, 4), (0.0, 1)])
def test_what_is_something_does_not_read_as_nothing(value: float, decimals: int) -> None:
    assert format_of(value).endswith(f".{decimals}f")


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "drawn"), [(400, 400), (401, 400)])
def test_of_very_many_rows_the_first_are_drawn_and_all_are_downloaded(rows: int, drawn: int) -> None:
    def page(rows: int) -> None:
        import polars as pl

        from sweepscope.dashboard.widgets import tables

        tables.first_rows(pl.DataFrame({"gpu_hours": range(rows), "empty": None}), ["gpu_hours", "empty"], csv_name="x")

    app = AppTest.from_function(page, args=(rows,), default_timeout=120).run()
    assert not app.exception
    assert app.dataframe[0].value.shape == (drawn, 1)
    assert app.get("download_button")[0].proto.label == f"CSV · {rows} rows"
    notes = [one.proto.body for one in app.get("html")]
    assert any(f"The first 400 of {rows} rows; the CSV has all." in note for note in notes) == (rows > drawn)
