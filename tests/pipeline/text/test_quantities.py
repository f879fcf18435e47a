"""Printed quantities in base units."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import HUMAN, NUMBER, human, number, size
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp


def read(expression: pl.Expr) -> object:
    return pl.select(expression).item()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("1,234.5", 1234.5),
        ("-3e-5", -3e-5),
        ("+2", 2.0),
        (".5", 0.5),
        ("inf", math.inf),
        ("", None),
        ("N/A", None),
        ("1.2.3", None),
        ("1K", None),
        (None, None),
    ],
)
def test_numbers(text: str | None, value: float | None) -> None:
    assert read(number(pl.lit(text, pl.String))) == value


def test_a_literal_fills_its_column() -> None:
    frame = pl.DataFrame({"a": [1, 2]}).with_columns(h=human(pl.lit("2K")), s=size(pl.lit(None, pl.String)))
    assert frame.rows() == [(1, 2000.0, None), (2, 2000.0, None)]


def test_not_a_number_is_a_number() -> None:
    found = read(number(pl.lit("NaN")))
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("13.8K", 13_800.0),
        ("4.14M", 4_140_000.0),
        ("1.02 B", 1.02e9),
        ("1.02G", 1.02e9),
        ("3T", 3e12),
        ("64", 64.0),
        ("1.87e-05", 1.87e-05),
        ("1.1K", 1100.0),
        ("K", None),
        ("", None),
        ("12Z", None),
        (None, None),
    ],
)
def test_human_formatted_numbers(text: str | None, value: float | None) -> None:
    assert read(human(pl.lit(text, pl.String))) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.75GB", 1_750_000_000),
        ("496.00MiB", 496 * 2**20),
        ("169.20GiB", round(169.2 * 2**30)),
        ("12B", 12),
        ("1 KiB", 1024),
        ("0.00GB", 0),
        ("1.75", None),
        ("GB", None),
        ("1.75GiBi", None),
        ("9e99TiB", None),
        (None, None),
    ],
)
def test_sizes(text: str | None, value: int | None) -> None:
    assert read(size(pl.lit(text, pl.String))) == value


@given(st.floats(0.001, 999.994), st.sampled_from(["", "K", "M", "B", "T"]))
def test_what_is_printed_in_three_digits_is_read_back(value: float, suffix: str) -> None:
    printed = f"{value:.2f}{suffix}"
    scale = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[suffix]
    found = read(human(pl.lit(printed)))
    assert found == pytest.approx(float(f"{value:.2f}") * scale, rel=1e-12)


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_text_is_a_number_or_null(texts: list[str]) -> None:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    column = pl.col("text")
    found = frame.select(number(column).alias("n"), human(column).alias("h"), size(column).alias("s"))
    assert found.height == len(texts)
    assert found.schema == {"n": pl.Float64, "h": pl.Float64, "s": pl.Int64}


@given(st.text(max_size=20))
def test_the_patterns_match_only_what_the_readers_can_read(text: str) -> None:
    found = pl.select(n=pl.lit(text).str.extract(f"({NUMBER})"), h=pl.lit(text).str.extract(f"({HUMAN})"))
    read_back = found.select(number(pl.col("n")), human(pl.col("h")))
    assert (found.select(pl.all().is_null()).row(0)) == read_back.select(pl.all().is_null()).row(0)


class TestTimestamps:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("[2024-04-06 03:02:12.123] iteration", "2024-04-06 03:02:12"),
            ("CANCELLED AT 2021-05-27T21:42:11 DUE", "2021-05-27 21:42:11"),
            ("10/17/2025 16:31:56 [INFO]: x", "2025-10-17 16:31:56"),
            ("[20260511 02:59:23][rank-7/8]", "2026-05-11 02:59:23"),
            ("two: 2024-01-01 00:00:00 and 2025-01-01 00:00:00", "2024-01-01 00:00:00"),
        ],
    )
    def test_each_spelling(self, text: str, expected: str) -> None:
        assert str(read(timestamp(pl.lit(text)))) == expected

    @pytest.mark.parametrize(
        "text", ["", "no time", "2024-13-45 99:99:99", "W1120 23:30:08.82 1 run.py:8]", "31/31/2025 00:00:00"]
    )
    def test_everything_else_is_unknown(self, text: str) -> None:
        assert read(timestamp(pl.lit(text))) is None


@pytest.mark.slow
@given(st.lists(st.sampled_from(["1.02K", "3 M", "", None, "x", "12.50GiB", "1.1", "7B"]), max_size=60))
def test_texts_that_come_again_are_read_as_if_alone(texts: list[str | None]) -> None:
    text = pl.col("text")
    values = [human(text).alias("h"), size(text).alias("s")]
    frames = [pl.DataFrame({"text": part}, schema={"text": pl.String}) for part in (texts, *([one] for one in texts))]
    together, *alone = [frame.select(values) for frame in frames]
    assert together.rows() == [row for frame in alone for row in frame.rows()]


STAMPED = (
    "[2024-01-02 03:04:05,678] a",
    "2024-01-02T03:04:05 b",
    "2024-13-45_99:99:99 c",
    "10/17/2025 16:31:56 d",
    "e",
    "[20260511 02:59:23] f",
    '2024-13-45 99:99:99 :::MLLOG {"time_ms": 1700000012345}',
    "2024-01-02_03:04:05 g",
)


@pytest.mark.slow
@given(st.lists(st.sampled_from(STAMPED), max_size=40), st.sampled_from([1, 300]))
def test_times_of_many_lines_are_those_of_each(texts: list[str], times: int) -> None:
    lines = pl.DataFrame({"text": texts * times}, schema={"text": pl.String})
    alone = {text: read(timestamp(pl.lit(text))) for text in STAMPED}
    expected = [alone[text] for text in texts] * times
    assert lines.select(timestamp(pl.col("text"))).to_series().to_list() == expected
    assert extract_each(lines, STAMPS).select(stamped().alias("ts"))["ts"].to_list() == expected
