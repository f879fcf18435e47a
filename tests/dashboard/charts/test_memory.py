from __future__ import annotations

import pytest

from sweepscope.dashboard.charts import memory
from sweepscope.dashboard.charts.grid import left_margin, short_labels
from sweepscope.dashboard.format.theme import LIGHT
from tests.dashboard.grid_rows import cell, empty, grid


def test_a_bar_is_the_share_of_the_card() -> None:
    figure = memory.draw(grid(cell(mem_peak_bytes=42_735_763_456)), LIGHT)
    track, bar = figure.layout.shapes
    assert (bar.x1 - bar.x0) / (track.x1 - track.x0) == pytest.approx(0.5)
    assert figure.data[0].text[0].replace("\xa0", " ") == "40 GiB"


def test_near_the_limit_is_said() -> None:
    figure = memory.draw(grid(cell(mem_peak_bytes=80_000_000_000)), LIGHT)
    assert figure.data[0].text[0].replace("\xa0", " ") == "<b>75 GiB</b> near limit"


def test_a_bar_never_leaves_its_track() -> None:
    track, bar = memory.draw(grid(cell(mem_peak_bytes=99_000_000_000)), LIGHT).layout.shapes
    assert bar.x1 == pytest.approx(track.x1)


@pytest.mark.parametrize(
    ("row", "text"),
    [(cell(mem_peak_bytes=None), "not logged"), (empty(), "no result"), (cell(memory_bytes=None), "67 GiB")],
)
def test_a_missing_peak_draws_no_bar(row: dict[str, object], text: str) -> None:
    figure = memory.draw(grid(row), LIGHT)
    assert len(figure.layout.shapes) == 1
    assert figure.data[0].text[0].replace("\xa0", " ") == text


def test_rows_share_the_heatmaps_columns() -> None:
    models = ["Llama 8.86B", "Llama 80B"]
    figure = memory.draw(grid(cell(models[0], 1), cell(models[1], 2)), LIGHT)
    assert figure.layout.margin.l == left_margin(models)
    assert list(figure.layout.yaxis.ticktext) == short_labels(models) == ["8.86B", "80B"]


def test_names_without_a_word_in_common_are_not_cut_to_their_ends() -> None:
    models = ["Qwen2.5 7B", "Llama 3 8B"]
    assert short_labels(models) == models
    assert left_margin(models) >= left_margin(["0123456789"]), "they have room"
