"""Facts are put in the order of their lines."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.logs import facts
from sweepscope.pipeline.logs.facts import in_order


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "places", [[], [(1, 5)], [(1, 1), (1, 1), (1, 2), (2, 1)], [(1, 1), (1, 3), (1, 2)], [(2, 1), (1, 1)]]
)
def test_facts_are_put_in_order(rows: int, places: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_ORDER_CHECK_ROWS", rows)
    frame = pl.DataFrame(places, schema=["source", "line_no"], orient="row").cast(pl.Int64)
    assert in_order(frame).rows() == sorted(places)
    assert (in_order(frame) is frame) == (places == sorted(places))
