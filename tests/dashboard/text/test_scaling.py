from __future__ import annotations

from typing import Any

import polars as pl

from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import scaling as texts
from sweepscope.dashboard.view_models.scaling import Baseline, against, drawn_lines, with_size

_SLICE = Slice("published", "H100-SXM-80GB", 4096, 1_048_576)


def curve(line: str, **mfu_by_nodes: float) -> list[dict[str, Any]]:
    return [
        {
            "line": line,
            "num_nodes": int(nodes[1:]),
            "num_gpus": 8 * int(nodes[1:]),
            "run_id": f"{line}{nodes}",
            "layout": "DP8",
            "mfu": mfu,
            "tokens_per_s_per_gpu": mfu * 1e4,
            "tokens_per_s": mfu * 8e4 * int(nodes[1:]),
        }
        for nodes, mfu in mfu_by_nodes.items()
    ]


def prepared(*rows: dict[str, Any], baseline: Baseline | None = None) -> tuple[pl.DataFrame, list[str]]:
    schema = {
        "line": pl.String,
        "num_nodes": pl.Int64,
        "num_gpus": pl.Int64,
        "run_id": pl.String,
        "layout": pl.String,
        "mfu": pl.Float64,
        "tokens_per_s_per_gpu": pl.Float64,
        "tokens_per_s": pl.Float64,
    }
    points = against(with_size(pl.DataFrame(list(rows), schema=schema), "node"), baseline or Baseline("best"))
    return points, drawn_lines(points)


def answer(*rows: dict[str, Any], baseline: Baseline | None = None) -> str:
    points, lines = prepared(*rows, baseline=baseline)
    return texts.answer(points, lines, baseline or Baseline("best"), _SLICE, "node").replace("\xa0", " ")


_8B = curve("8B", n1=0.4, n2=0.38, n4=0.1)
_80B = curve("80B", n2=0.3, n4=0.24)


def test_the_answer_says_what_is_left_at_the_largest_size() -> None:
    assert answer(*_8B, *_80B) == (
        "With a fixed 1M-token batch, **at 4 nodes 80B keeps 80 % of its best throughput per GPU and 8B 25 %.** "
        "The costliest step is 2 to 4 nodes: it loses 47 % on average."
    )


def test_the_answer_names_the_chosen_baseline() -> None:
    assert "8B keeps 26 % of its 2-node throughput per GPU" in answer(*_8B, baseline=Baseline("size", 2))
    assert "8B keeps 25 % of its smallest run's throughput per GPU" in answer(*_8B, baseline=Baseline("first"))


def test_flat_curves_are_not_dramatised() -> None:
    assert answer(*curve("8B", n1=0.4, n2=0.399, n4=0.398)).endswith("No step costs more than 2 %.")
    two = (*curve("8B", n1=0.4, n2=0.399, n4=0.398), *curve("80B", n1=0.3, n2=0.299, n4=0.298))
    assert answer(*two).endswith("No step costs more than 2 % on average.")


def test_what_one_line_loses_is_no_average() -> None:
    assert answer(*_8B).endswith("The costliest step is 2 to 4 nodes: it loses 74 %.")


def test_lines_without_mfu_have_the_same_answer() -> None:
    assert answer(*(row | {"mfu": None} for row in _8B)) == answer(*_8B)


def test_a_single_size_is_not_a_curve() -> None:
    text = answer(*curve("8B", n4=0.4), *curve("80B", n4=0.3))
    assert text == (
        "**Nothing to compare yet.** 2 lines with results on 4 nodes; a curve needs one line with two node counts. Run "
        "one of them on another node count with the same batch, or choose another grid under Filters."
    )


def test_no_rows_say_so() -> None:
    assert answer().startswith("**Nothing to compare yet.** 0 lines with results on no node count")


def test_lines_that_are_not_drawn_are_counted() -> None:
    points, lines = prepared(*_8B, *curve("80B", n4=0.3))
    assert texts.meta(points, lines, _SLICE).endswith("1 more line (a single point, or beyond six) only in the table.")


def test_hover_and_alt_say_what_the_chart_shows() -> None:
    points, lines = prepared(*_8B)
    assert texts.hover(points.row(2, named=True), "node").split("<br>")[0] == "<b>8B on 4 nodes</b>"
    assert texts.alt(points, lines, "mfu", title="MFU", noun="node").replace("\xa0", " ") == (
        "MFU: 8B from 40.0 % on 1 node to 10.0 % on 4 nodes."
    )
    assert texts.alt(points, [], "mfu", title="MFU", noun="node") == "MFU: no line with two points."
