from __future__ import annotations

import polars as pl
import pytest

from sweepscope.dashboard.format import columns
from sweepscope.schemas.registry import COLUMNS


def test_a_table_is_shown_in_the_units_of_its_headings() -> None:
    frame = pl.DataFrame({"mfu": [0.363, None], "mem_peak_allocated_bytes": [2**30, None], "layout": ["DP1", None]})
    shown = columns.display_frame(frame)
    assert shown.columns == ["MFU, %", "Peak allocated, GiB", "Layout"]
    assert shown.row(0) == pytest.approx((36.3, 1.0, "DP1"))
    assert shown.row(1) == (None, None, None)


def test_every_column_has_a_label_and_a_heading() -> None:
    for name in COLUMNS:
        assert columns.column_label(name)
        assert columns.heading(name).startswith(columns.column_label(name))


def test_two_columns_of_a_table_never_share_a_heading() -> None:
    from sweepscope.schemas.registry import ALL

    for table in ALL.values():
        headings = [columns.heading(name) for name in table.column_names]
        assert len(set(headings)) == len(headings), table.name
