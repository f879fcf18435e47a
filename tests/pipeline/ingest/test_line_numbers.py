"""Line numbers in order answer as a set of them would."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.line_numbers import LineNumbers, rows_of

LINES = st.lists(st.integers(1, 60), max_size=40)


@given(LINES, st.sets(st.integers(0, 61)))
def test_they_answer_as_a_set_does(numbers: list[int], asked: set[int]) -> None:
    lines = LineNumbers(pl.Series(sorted(numbers), dtype=pl.Int64))
    assert bool(lines) == bool(numbers)
    assert lines.among(asked) == set(numbers) & asked
    assert lines.holds(asked).all() == asked.issubset(numbers)


@given(LINES, st.integers(0, 61))
def test_rows_of_a_source_are_found_in_order(numbers: list[int], source: int) -> None:
    sources = pl.Series(sorted(numbers), dtype=pl.Int64)
    assert sources[rows_of(sources, source)].to_list() == [one for one in sorted(numbers) if one == source]
