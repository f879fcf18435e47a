"""Timestamps from which the begin and the end of a run are read, in the order of their files and lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, gathered, in_slices, is_large
from sweepscope.pipeline.logs.facts import Facts

SPANS = pl.Schema({"source": pl.Int64(), "line_no": pl.Int64(), "ts": pl.Datetime("us")})
"""One row per timestamp."""


def stamps_of(facts: Facts) -> list[pl.DataFrame]:
    """SPANS rows of steps, and of events."""
    # Columns by name: a query over some of them would rechunk all.
    frames = (frame[SPANS.names()] for frame in (facts.steps, facts.events))
    return [in_slices(frame, lambda rows: rows.drop_nulls("ts")) for frame in frames]


def ordered_spans(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Distinct SPANS rows in file order.

    Args:
        parts: SPANS rows. The part with most rows is in the order of files and lines.
    """
    *few, most = sorted([SPANS.to_frame(), *parts], key=lambda part: part.height)
    others = pl.concat(few)
    if not is_large(most) or is_large(others):
        return _ordered(pl.concat([most, others]))
    return gathered(lambda: _merged(most, others), SPANS, most.height + others.height)


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.sort(SPANS.names())
    # Duplicates are neighbours now: to look for them among all rows would take ten times the memory.
    is_again = pl.all_horizontal(pl.all() == pl.all().shift(1)).fill_null(value=False)
    return rows.filter(~is_again)


def _merged(most: pl.DataFrame, others: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """All rows in order, a slice at a time; the rows of a line are never parted."""
    start = 0
    while start < most.height:
        stop = _end_of_line(most, start + SLICE_ROWS)
        source, line_no = most.row(stop - 1)[:2]
        is_here = (pl.col("source") < source) | ((pl.col("source") == source) & (pl.col("line_no") <= line_no))
        here = others.filter(is_here) if stop < most.height else others
        others = others.filter(~is_here)
        yield _ordered(pl.concat([most[start:stop], here]))
        start = stop


def _end_of_line(rows: pl.DataFrame, row: int) -> int:
    """The first row from `row` on that is of another line than the row before it."""
    while row < rows.height and rows.row(row)[:2] == rows.row(row - 1)[:2]:
        row += 1
    return min(row, rows.height)
