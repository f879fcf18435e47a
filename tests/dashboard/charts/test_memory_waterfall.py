"""Peaks beside their cards: what is drawn and what is said where a mark would lie outside."""

from __future__ import annotations

from typing import Any

import polars as pl

from sweepscope.dashboard.charts.memory_waterfall import draw_peaks, draw_waterfall
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.memory import Bar

GIB = 1 << 30


def row(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": "a",
        "status": "oom",
        "mem_total_bytes": 80 * GIB,
        "mem_peak_allocated_bytes": None,
        "mem_peak_reserved_bytes": None,
        "mem_used_max_bytes": None,
        "est_mem_bytes": None,
    } | changes


def texts(*rows: dict[str, Any]) -> tuple[list[str], list[float]]:
    figure = draw_peaks(pl.DataFrame(rows, infer_schema_length=None), ["x"] * len(rows), [""] * len(rows), LIGHT, "a")
    (estimates,) = (trace.x for trace in figure.data if trace.type == "scatter" and trace.marker.symbol)
    return [note.text.replace("\xa0", " ") for note in figure.layout.annotations], list(estimates)


def test_a_name_of_many_parts_is_shown_whole() -> None:
    name = "DP32 TP2 PP6 · GAS32 MBS2 · Z1 · BigScience 181B variant · 48 nodes · recompute selective"
    (label,) = draw_peaks(pl.DataFrame([row()]), [name], [""], LIGHT, None).layout.yaxis.ticktext
    assert label.replace("<br>", " · ") == name
    assert label.count("<br>") == 2


def test_an_estimate_within_the_card_is_a_mark_and_beyond_it_a_text() -> None:
    shown, marks = texts(
        row(est_mem_bytes=60.0 * GIB),
        row(est_mem_bytes=110.0 * GIB),
        row(status="completed", mem_peak_allocated_bytes=70 * GIB, est_mem_bytes=110.0 * GIB),
    )
    assert shown == ["<b>▲ not logged</b>", "<b>▲ ~110 GiB</b>", "✓ 70.0 GiB"]
    assert marks == [60.0]


def test_a_long_name_takes_a_second_line_and_its_rows_the_room_for_it() -> None:
    frame = pl.DataFrame([row(), row(run_id="b")], infer_schema_length=None)
    long = "DP32 TP2 PP6 · GAS32 MBS2 · Z1 · BigScience <176B> · 48 nodes"
    figure, short = (draw_peaks(frame, [name, "DP8"], ["", ""], LIGHT, "a") for name in (long, "DP1"))
    shown = list(figure.layout.yaxis.ticktext)
    assert shown == ["DP32 TP2 PP6 · GAS32 MBS2 · Z1<br>BigScience &lt;176B&gt; · 48 nodes", "DP8"]
    assert figure.layout.height == short.layout.height + 2 * 15


def test_gaps_say_their_sign_and_a_zero_stays() -> None:
    bars = [
        Bar("Allocated", "level", "allocated", 0, 4 * GIB),
        Bar("Reserved", "gap", "fragmentation", 4 * GIB, 0),
        Bar("Unexplained", "gap", "estimate_gap", 5 * GIB, -GIB),
    ]
    figure = draw_waterfall(bars, LIGHT)
    assert [note.text.replace("\xa0", " ") for note in figure.layout.annotations] == [
        "<b>4.0 GiB</b>",
        "0 GiB",
        "−1.0 GiB",
    ]
    assert figure.data[2].base[0] == 4.0
    assert figure.data[2].x[0] == 1.0
    assert figure.data[2].marker.pattern.shape == "/"


def test_tracks_of_many_runs_are_three_traces_and_a_missing_size_has_no_bar() -> None:
    sizes = [(80, 70, 60), (None, 70, None), (80, None, 40), (None, None, None)]
    frame = pl.DataFrame(
        [
            row(
                run_id=str(i),
                mem_total_bytes=card and card * GIB,
                mem_peak_reserved_bytes=reserved and reserved * GIB,
                mem_peak_allocated_bytes=allocated and allocated * GIB,
            )
            for i, (card, reserved, allocated) in enumerate(sizes)
        ],
        infer_schema_length=None,
    )
    figure = draw_peaks(frame, ["x"] * 4, [""] * 4, LIGHT, "2")
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [list(zip(bar.y, bar.x, bar.marker.color, strict=True)) for bar in bars] == [
        [(0, 80.0, LIGHT.cell), (2, 80.0, LIGHT.cell)],
        [(0, 70.0, LIGHT.hatch), (1, 70.0, LIGHT.hatch)],
        [(0, 60.0, LIGHT.axis), (2, 40.0, LIGHT.accent)],
    ]
