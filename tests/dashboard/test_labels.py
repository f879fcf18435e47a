from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from dashboard import labels
from dashboard.labels import NBSP
from schemas.columns import COLUMNS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (labels.percent(0.363236), "36.3 %"),
        (labels.percent(None), "–"),
        (labels.points(-0.0204), "−2.0"),
        (labels.points(0.0204), "+2.0"),
        (labels.points(-0.0001), "0.0"),
        (labels.number(3280), "3,280"),
        (labels.number(-0.2), "0"),
        (labels.gib(71_833_747_456), "66.9 GiB"),
        (labels.seconds(0.0680), "0.0680 s"),
        (labels.seconds(1.3579), "1.36 s"),
        (labels.seconds(111.4), "111 s"),
        (labels.seconds(0.0), "0 s"),
        (labels.ratio(2.06), "2.1 ×"),
        (labels.token_count(1_048_576), "1M"),
        (labels.token_count(327_680), "320k"),
        (labels.token_count(None), "unknown"),
        (labels.moment(datetime(2026, 1, 2, 3, 4)), "2 Jan 2026 03:04"),
        (labels.count(1, "run"), "1 run"),
    ],
)
def test_numbers_read_as_people_write_them(text: str, expected: str) -> None:
    assert text.replace(NBSP, " ") == expected


def test_a_table_is_shown_in_the_units_of_its_headings() -> None:
    frame = pl.DataFrame({"mfu": [0.363, None], "mem_peak_allocated_bytes": [2**30, None], "layout": ["DP1", None]})
    shown = labels.display_frame(frame)
    assert shown.columns == ["MFU, %", "Peak allocated, GiB", "Layout"]
    assert shown.row(0) == pytest.approx((36.3, 1.0, "DP1"))
    assert shown.row(1) == (None, None, None)


def test_every_column_has_a_label_and_a_heading() -> None:
    for name in COLUMNS:
        assert labels.column_label(name)
        assert labels.heading(name).startswith(labels.column_label(name))


def test_two_columns_of_a_table_never_share_a_heading() -> None:
    from schemas.registry import ALL

    for table in ALL.values():
        headings = [labels.heading(name) for name in table.column_names]
        assert len(set(headings)) == len(headings), table.name


def test_other_peoples_text_cannot_bring_tags_into_a_chart() -> None:
    assert labels.plain("<b>&</b>") == "&lt;b&gt;&amp;&lt;/b&gt;"
