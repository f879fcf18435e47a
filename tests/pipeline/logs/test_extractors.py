"""Settings of repeated texts are those of each line; expressions over lines become facts."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.logs.dialect import LineFacts
from sweepscope.pipeline.logs.dialects.megatron import settings as megatron_settings
from sweepscope.pipeline.logs.dialects.torchtitan import settings as torchtitan_settings
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.extractors import computed_peaks, computed_settings, named_settings, once_per_text
from sweepscope.pipeline.logs.facts import PEAK_FACTS, SETTING_FACTS, conform, in_order
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.paths import GOLDEN

ONCE = {
    dialect.name: dialect.settings
    for dialect in DIALECTS
    if hasattr(dialect.settings, "__wrapped__") and (GOLDEN / dialect.name).is_dir()
} | {"megatron": megatron_settings._others}


def printed(form: str, *, times: int) -> pl.DataFrame:
    """The lines of a format's example logs, in so many files."""
    logs = [path for path in (GOLDEN / form).rglob("*") if path.suffix in {".log", ".out", ".txt"}]
    data = b"".join(path.read_bytes() for path in sorted(logs))
    return cleaning.clean(lines.split_many((source, data, 1) for source in range(times)))


@pytest.mark.parametrize("form", ONCE)
def test_asked_once_about_a_text_settings_are_the_same(form: str) -> None:
    function: LineFacts = ONCE[form]
    alone: LineFacts = function.__wrapped__  # type: ignore[attr-defined] # of functools.wraps
    rows = printed(form, times=3)
    expected = in_order(conform(alone(rows), SETTING_FACTS))
    assert expected.height
    assert in_order(function(rows)).equals(expected)


@pytest.mark.parametrize("times", [1, 3])
def test_each_text_is_asked_about_once_where_texts_come_again(times: int) -> None:
    asked: list[int] = []

    @once_per_text
    def settings(lines: pl.DataFrame) -> pl.DataFrame:
        asked.append(lines.height)
        return named_settings(lines, r"(\w+)=(\d)", {"a": "tp", "b": "pp"}, setting_source="log_line")

    texts = ["a=1 b=2", "b=3", "none"]
    rows = pl.DataFrame(
        [(source, place + 1, text) for source in range(times) for place, text in enumerate(texts)],
        schema=["source", "line_no", "text"],
        orient="row",
    )
    found = settings(rows)
    assert asked == [3]
    assert found.schema == SETTING_FACTS
    assert found.select("source", "line_no", "name", "value").rows() == [
        row
        for source in range(times)
        for row in ((source, 1, "tp", "1"), (source, 1, "pp", "2"), (source, 2, "pp", "3"))
    ]


def test_no_lines_have_no_settings() -> None:
    empty = pl.DataFrame(schema={"source": pl.Int64, "line_no": pl.Int64, "text": pl.String})
    assert torchtitan_settings.settings(empty).schema == SETTING_FACTS


LINES = pl.DataFrame({"source": [0, 0, 1], "line_no": [1, 2, 1], "text": ["2.6", "none", "4"]}).cast(
    {"source": pl.Int64, "line_no": pl.Int64}
)
VALUE = pl.col("text").cast(pl.Float64, strict=False)


def test_computed_settings_are_whole_numbers_or_text_and_left_out_where_unknown() -> None:
    found = computed_settings(LINES, {"params": VALUE, "model": pl.col("text")}, setting_source="derived")
    assert found.schema == SETTING_FACTS
    assert found.select("source", "line_no", "name", "value").rows() == [
        *[(0, 1, "params", "3"), (1, 1, "params", "4")],
        *[(0, 1, "model", "2.6"), (0, 2, "model", "none"), (1, 1, "model", "4")],
    ]
    assert set(found["setting_source"]) == {"derived"}


def test_computed_peaks_are_left_out_where_unknown() -> None:
    found = computed_peaks(LINES, {"mem_peak_reserved_bytes": VALUE})
    assert found.schema == PEAK_FACTS
    assert found["value"].to_list() == [2.6, 4.0]


def test_no_lines_give_neither() -> None:
    assert computed_settings(LINES.clear(), {"params": VALUE}).schema == SETTING_FACTS
    assert computed_peaks(LINES.clear(), {"mem_peak_reserved_bytes": VALUE}).schema == PEAK_FACTS
