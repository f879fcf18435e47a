from __future__ import annotations

import re
from typing import Any

import plotly.graph_objects as go
import pytest

from sweepscope.dashboard.charts import heatmap
from sweepscope.dashboard.charts.grid import Grid
from sweepscope.dashboard.format import metrics
from sweepscope.dashboard.format.metrics import METRICS
from sweepscope.dashboard.format.theme import DARK, LIGHT, Theme, contrast, scale_color
from sweepscope.schemas.vocab import CELL_STATE
from tests.dashboard.grid_rows import Row, cell, empty, grid

_SMALL, _LARGE = 1_000_000_000, 80_000_000_000
_ROWS = (
    cell("1B", 1, params=_SMALL, mfu=0.45),
    cell("1B", 2, params=_SMALL, mfu=0.02),
    empty("80B", 1),
    cell("80B", 2, params=_LARGE),
)


def drawn(*rows: Row, metric: str = "mfu", theme: Theme = LIGHT, **options: Any) -> go.Figure:
    frame = grid(*(rows or _ROWS))
    return heatmap.draw(frame, METRICS[metric], theme, hovers=["hover"] * frame.height, **options)


def texts(figure: go.Figure) -> list[str]:
    return [re.sub(r"<[^>]+>", " ", note.text).replace("\xa0", " ") for note in figure.layout.annotations]


def test_small_models_and_few_nodes_come_first() -> None:
    grid_of = Grid.of(
        grid(cell("80B", 8, params=80), cell("7B", 64, params=None), cell("1B", 8, params=1), cell("1B", 16, params=1))
    )
    assert grid_of.models == ("1B", "80B", "7B")
    assert grid_of.scales == ("8", "16", "64")
    assert grid_of.at("80B", "16") == (1, 1)


def test_each_cell_can_be_hovered_and_clicked() -> None:
    layer = drawn().data[-1]
    assert [list(point) for point in layer.customdata] == [["1B", "1"], ["1B", "2"], ["80B", "1"], ["80B", "2"]]
    assert list(zip(layer.x, layer.y, strict=True)) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert layer.marker.opacity == layer.unselected.marker.opacity == 0
    assert drawn().layout.hoverdistance == -1


def test_a_cell_says_its_value_and_its_layout() -> None:
    first, _, third, *_ = texts(drawn())
    assert first.split() == ["45.0", "%", "DP16", "TP8", "PP1", "GAS2", "MBS8", "·", "Z0"]
    assert third.split() == ["△", "won't", "fit", "149", "GiB", "+", "activations"]


def test_the_small_grid_leaves_layouts_and_reasons_out() -> None:
    first, _, third, *_ = texts(drawn(has_layouts=False))
    assert (first.strip(), third.strip()) == ("45.0 %", "△ won't fit")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("metric", list(METRICS))
def test_every_text_on_the_grid_can_be_read(theme: Theme, metric: str) -> None:
    rows = [
        cell("1B", n, params=1, mfu=n / 100, hfu=n / 90, step_time_s=1 / n, tokens_per_s_per_gpu=100.0 * n)
        for n in range(1, 60)
    ]
    frame = grid(*rows, *(empty("80B", n, state=state) for n, state in enumerate(CELL_STATE, 1) if state != "measured"))
    figure = heatmap.draw(frame, METRICS[metric], theme, hovers=[""] * frame.height)
    shares = metrics.paint_share(frame, METRICS[metric])
    for note, share in zip(figure.layout.annotations, shares, strict=False):
        is_painted = share is not None and METRICS[metric].paint != "share"
        background = scale_color(share) if is_painted else theme.cell
        assert contrast(note.font.color, background) >= 4.5


@pytest.mark.parametrize("state", [state for state in CELL_STATE if state != "measured"])
def test_an_empty_cell_shows_symbol_and_word(state: str) -> None:
    figure = drawn(empty("80B", 1, state=state))
    assert len(texts(figure)[0].split()) >= 2


def test_nobody_tried_is_a_dotted_frame_and_failure_a_hatch() -> None:
    states = ("not_run", "oom", "wont_fit", "impossible")
    figure = drawn(*(empty("80B", 2**i, state=state) for i, state in enumerate(states)))
    assert [shape.line.dash for shape in figure.layout.shapes] == ["dot"]
    assert list(figure.data[1].marker.pattern.shape) == ["x", "/", ""]


def test_a_missing_value_is_said_and_never_zero() -> None:
    assert texts(drawn(cell(mfu=None), cell(num_nodes=32)))[0].split()[:2] == ["not", "logged"]


def test_the_selected_cell_is_framed_in_ink() -> None:
    (frame,) = drawn(selected=("80B", "2")).layout.shapes
    assert (frame.line.width, frame.line.color, frame.x0, frame.y1) == (3, LIGHT.ink, 0.52, 1.48)
    assert not drawn(selected=("gone", "2")).layout.shapes


def test_colour_does_not_depend_on_the_other_cells() -> None:
    alone, among = drawn(cell(mfu=0.25)), drawn(cell(mfu=0.25), cell(num_nodes=32, mfu=0.5))
    assert alone.data[0].z[0][0] == among.data[0].z[0][0] == 0.5


def test_memory_is_drawn_as_bars_without_colour() -> None:
    figure = drawn(cell(mem_peak_bytes=42_735_763_456), metric="memory")
    (bar,) = figure.layout.shapes
    assert bar.fillcolor == LIGHT.hatch
    assert bar.x1 - bar.x0 == pytest.approx(0.48)
    assert all(value is None for row in figure.data[0].z for value in row)


def test_gpus_stand_under_the_nodes() -> None:
    assert "8 GPUs" in drawn().layout.xaxis.ticktext[0]
    assert "GPU" not in drawn(has_layouts=False).layout.xaxis.ticktext[0]
    two = drawn(cell("tiny", 1, num_gpus=1), cell("tiny", 1, num_gpus=4), has_layouts=False)
    assert ["1 GPU<" in two.layout.xaxis.ticktext[0], "4 GPUs<" in two.layout.xaxis.ticktext[1]] == [True, True]


def test_names_are_escaped() -> None:
    figure = drawn(cell("<script>", layout="<b>bold</b>"))
    assert "<script>" not in figure.layout.yaxis.ticktext[0]
    assert "<b>bold</b>" not in figure.layout.annotations[0].text


def test_a_cell_without_a_result_may_hold_an_estimate_and_says_so() -> None:
    rows = (cell("1B", 1, params=_SMALL), empty("1B", 2, state="not_run"), empty("1B", 4, state="oom"))
    values = {("1B", "1"): 0.4, ("1B", "2"): 0.281}
    figure = drawn(*rows, estimates=values)
    first, second, third, *_ = texts(figure)
    assert "~" not in first  # what was measured needs none
    assert second.split() == ["○", "not", "run", "~28.1", "%"]
    assert "<i>" in figure.layout.annotations[1].text
    assert "~" not in third
    assert drawn(*rows, metric="throughput", estimates={("1B", "2"): 5028.4}).layout.annotations[1].text.count("~5,028")
