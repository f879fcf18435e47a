"""Where the layout has to change: axes, runs beside the lines, sentences and the two charts."""

from __future__ import annotations

from dataclasses import replace
from math import log10

import polars as pl
import pytest

from sweepscope.dashboard.charts import switch_points as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.text import switch_points as texts
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.dashboard.view_models.switch_points import (
    BATCH,
    GPUS,
    batches_around,
    counts_for,
    measured,
    switches_for,
)
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.reference.models import find_model, shape_of

ROW = find_model("Llama 3 8B")
assert ROW is not None
SETUP = Setup("Llama 3 8B", shape_of(ROW), "H100-SXM-80GB", 8, 8192, 2**21)
REQUEST = SETUP.request(choose_profile)
FOUND = switches_for(REQUEST)


def runs(*changes: dict[str, object]) -> pl.DataFrame:
    run = {"tp": 1, "pp": 1, "num_gpus": 64, "seq_len": 8192, "gbs_tokens": 2**21, "mfu": 0.4, "layout": "DP64 <b>"}
    rows = [{**run, "run_id": f"r{place}", "origin": "measured", **change} for place, change in enumerate(changes)]
    return pl.DataFrame(rows, schema_overrides={"mfu": pl.Float64})


def test_axes_have_the_question_and_reach_well_beyond_it() -> None:
    assert REQUEST.num_gpus in FOUND.counts
    assert FOUND.counts[0] == 8
    assert FOUND.counts[-1] >= 16 * REQUEST.num_gpus
    assert counts_for(4, 8)[0] == 8  # part of a node is below the axis
    assert batches_around(7) == [7, 14, 28, 56, 112]
    assert batches_around(1)[0] == 1


def test_the_fastest_run_of_each_kind_stands_beside_the_lines() -> None:
    frame = runs(
        {"mfu": 0.3},
        {"mfu": 0.35},
        {"tp": 8, "mfu": 0.41},
        {"tp": 16},
        {"pp": 2, "tp": 8, "num_gpus": 128},
        {"gbs_tokens": 2**22},
        {"mfu": None},
        {"seq_len": 4096},
    )
    sized = measured(frame, REQUEST, GPUS)
    assert {(row["num_gpus"], row["kind"], row["mfu"]) for row in sized.iter_rows(named=True)} == {
        (64, "data", 0.35),
        (64, "tensor", 0.41),
        (64, "tensor_out", 0.4),
        (128, "pipeline", 0.4),
    }
    assert set(measured(frame, REQUEST, BATCH)["gbs_tokens"]) == {2**21, 2**22}


def test_the_sentence_says_how_far_it_scales_what_changes_and_which_batch_keeps_it() -> None:
    text = texts.answer(FOUND, SETUP, REQUEST)
    lost = next(flip.value for flip in FOUND.flips if flip.condition == "efficiency_lost")
    assert lost is not None
    kept = max(count for count in FOUND.counts if count < lost)
    assert text.startswith(
        f"**Llama 3 8B keeps 90 % of its efficiency up to {kept:,} GPUs** at a 2M-token batch. From "
    )
    assert "On 64 GPUs" in text
    everywhere = replace(FOUND, flips=tuple(replace(flip, value=None) for flip in FOUND.flips), least_tokens=None)
    assert "up to all sizes tried, " in texts.answer(everywhere, SETUP, REQUEST)
    assert texts.answer(everywhere, SETUP, REQUEST).endswith("On 64 GPUs no batch tried reaches 90 %.")
    nothing = replace(FOUND, base_mfu=None)
    assert texts.answer(nothing, SETUP, REQUEST).startswith("**No layout of Llama 3 8B fits on up to ")


def test_what_flips_is_listed_with_the_letter_on_the_chart() -> None:
    marks = texts.marks(FOUND)
    assert [letter for letter, _, _ in marks] == [chr(ord("A") + place) for place in range(len(marks))]
    assert [value for _, value, _ in marks] == sorted(value for _, value, _ in marks)
    rows = dict(texts.flip_rows(FOUND))
    assert len(rows) == len(FOUND.flips)
    assert rows["The model fits"] == "from 8 on, the smallest tried"
    for letter, value, words in marks:
        assert rows[f"{letter} · {words[0].upper()}{words[1:]}"] == f"from {value:,} GPUs on"


@pytest.mark.parametrize("axis", [GPUS, BATCH])
def test_the_chart_has_a_line_for_each_kind_and_the_runs_hollow(axis: str) -> None:
    points = FOUND.over_gpus if axis == GPUS else FOUND.over_batches
    near = measured(runs({}, {"tp": 8}), REQUEST, axis)
    values = sorted(set(points[axis].to_list()))
    figure = charts.draw(
        points,
        near,
        LIGHT,
        axis=axis,
        names=texts.KIND,
        ticks=[(value, texts.tick(axis, value)) for value in values],
        title=texts.axis_title(axis, REQUEST),
        marks=[("A", values[2]), ("B", values[2])],
        hovers=(texts.hovers(points), texts.run_hovers(near)),
    )
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [trace.name for trace in lines] == [texts.KIND[kind] for kind in texts.kinds_shown(points)]
    first = points.filter(kind=texts.kinds_shown(points)[0]).sort(axis)
    assert list(lines[0].y) == pytest.approx([100 * value for value in first["est_mfu"]])
    hollow = [trace for trace in figure.data if trace.mode == "markers"]
    assert [list(trace.x) for trace in hollow] == [[REQUEST.num_gpus if axis == GPUS else 2**21]] * 2
    assert all(trace.marker.symbol.endswith("-open") for trace in hollow)
    assert "&lt;b&gt;" in hollow[0].hovertext[0]  # a layout is no markup
    marked = [note for note in figure.layout.annotations if note.text == "<b>A B</b>"]
    assert [note.x for note in marked] == [pytest.approx(log10(values[2]))]
    assert [shape.x0 for shape in figure.layout.shapes] == [values[2]]
    assert texts.alt(points, axis, FOUND).startswith("Estimated MFU of the fastest layout of each kind over ")
