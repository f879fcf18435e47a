"""Times as loggers print them."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from sweepscope.pipeline.text.arrow_buffers import buffers_of
from sweepscope.pipeline.text.line_templates import template_hashes
from sweepscope.pipeline.text.timestamps import times_of, timestamp


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2025-03-04 05:06:07,890 INFO step 1", datetime(2025, 3, 4, 5, 6, 7)),
        ("2025/03/04 05:06:07 - mmengine - INFO", datetime(2025, 3, 4, 5, 6, 7)),
        ("INFO - 03/04/25 05:06:07 - 0:00:27 - Epoch[0]", datetime(2025, 3, 4, 5, 6, 7)),
        ("03/04/2025 05:06:07 [INFO]", datetime(2025, 3, 4, 5, 6, 7)),
        ("[18:16:10] Batch 1/10000", None),
        ("99/99/99 05:06:07 no day", None),
    ],
)
def test_a_line_is_stamped_where_it_has_a_day_and_a_time(line: str, time: datetime | None) -> None:
    assert pl.select(timestamp(pl.lit(line))).item() == time


@pytest.mark.parametrize("has_templates", [False, True])
def test_a_line_without_a_time_has_that_of_its_prefix(has_templates: bool) -> None:
    texts, prefixes = ["2025-03-04 05:06:07 a", "b 1", "c"], [None, "2026-01-02 03:04:05 ", "[rank0]:"]
    lines = pl.DataFrame({"text": texts, "prefix": prefixes})
    lines = lines.with_columns(template=template_hashes(*buffers_of(lines["text"]))) if has_templates else lines
    found = times_of(lines)
    assert found.to_list() == [datetime(2025, 3, 4, 5, 6, 7), datetime(2026, 1, 2, 3, 4, 5), None]
    assert times_of(lines[2:]).to_list() == [None]


def test_lines_of_several_loggers_keep_their_own_forms() -> None:
    lines = pl.DataFrame({"text": ["2025-03-04 05:06:07 a", "2025/03/04 05:06:08 b", "03/04/25 05:06:09 c", "none"]})
    seconds = lines.select(timestamp(pl.col("text")).dt.second())["text"].to_list()
    assert seconds == [7, 8, 9, None]
