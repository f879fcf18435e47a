"""One spelling of a layout, and what makes two layouts the same."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.reference.layout_text import LAYOUT, full_layout_text, layout_key, layout_text, layout_texts

DEGREES = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "dp_replicate")
LAYOUTS = st.fixed_dictionaries(
    {name: st.one_of(st.none(), st.integers(1, 64)) for name in DEGREES}
    | {"zero_stage": st.one_of(st.none(), st.integers(0, 3))}
)
PLAIN: dict[str, Any] = {"dp": 8, "tp": 2, "pp": 1, "gas": 4, "mbs": 1, "zero_stage": 1}


@given(st.lists(LAYOUTS, min_size=1, max_size=8))
def test_a_frame_is_spelled_as_its_rows_are(rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys([*DEGREES, "zero_stage"], pl.Int64))
    assert layout_texts(frame).to_list() == [layout_text(row) for row in rows]


def test_a_column_that_is_missing_is_unknown() -> None:
    assert layout_texts(pl.DataFrame({"dp": [8, None]})).to_list() == ["DP8", None]
    assert layout_texts(pl.DataFrame(schema={"dp": pl.Int64})).to_list() == []


def test_schedule_and_recomputation_follow_the_text_of_the_store() -> None:
    row = {**PLAIN, "pipeline_schedule": "dualpipe", "recompute": "selective"}
    assert full_layout_text(row) == f"{layout_text(row)} · DualPipe · selective recompute"
    assert full_layout_text({**PLAIN, "pipeline_schedule": "interleaved", "recompute": "none"}) == layout_text(PLAIN)


@pytest.mark.parametrize(
    "stated",
    [
        {"cp": 1, "ep": 1, "vpp": 1, "recompute": "none", "dp_replicate": 1},
        {"cp": None, "ep": None, "vpp": None, "recompute": None, "dp_replicate": None},
    ],
)
def test_what_a_source_leaves_out_is_not_used(stated: dict[str, Any]) -> None:
    assert layout_key({**PLAIN, **stated}) == layout_key(PLAIN)


def test_sharding_over_one_rank_is_none() -> None:
    alone = {**PLAIN, "dp": 1}
    assert layout_key({**alone, "zero_stage": 3, "dp_replicate": 2}) == layout_key({**alone, "zero_stage": 0})


@pytest.mark.parametrize("name", [*LAYOUT, "dp_replicate"])
def test_every_choice_tells_layouts_apart(name: str) -> None:
    other = {**PLAIN, name: "full" if name == "recompute" else 3}
    assert layout_key(other) != layout_key(PLAIN)


def test_an_unknown_degree_is_not_a_known_one() -> None:
    assert layout_key({**PLAIN, "mbs": None}) != layout_key(PLAIN)
    assert layout_key({**PLAIN, "zero_stage": None}) != layout_key({**PLAIN, "zero_stage": 0})
