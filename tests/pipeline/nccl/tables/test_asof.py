"""Looking back and ahead among events of many owners."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.nccl.tables.asof import NONE, Events, owners, taken

_PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12)


@given(events=_PLACES, lines=_PLACES)
def test_the_last_event_before_and_the_first_after(events: list[tuple[int, int]], lines: list[tuple[int, int]]) -> None:
    (of_event, at), (of_line, line_no) = (
        np.array(places, dtype=np.int64).reshape(-1, 2).T for places in (events, lines)
    )
    found = Events(of_event, of_line, at)
    before, after = found.before(line_no).tolist(), found.after(line_no).tolist()
    for (owner, line), last, first in zip(lines, before, after, strict=True):
        own = [(place, number) for number, (whose, place) in enumerate(events) if whose == owner]
        assert last == max(((place, at) for place, at in own if place <= line), default=(0, NONE))[1]
        assert first == min(((place, at) for place, at in own if place >= line), default=(0, NONE))[1]


def test_lines_far_behind_all_events_are_of_their_owner_only() -> None:
    found = Events(np.array([0, 1]), np.array([0, 1]), np.array([5, 7]))
    assert found.before(np.array([1 << 62, 1 << 62])).tolist() == [0, 1]
    assert found.after(np.array([1 << 62, 6])).tolist() == [NONE, 1]


def test_owners_by_fewer_columns_are_wider() -> None:
    events = pl.DataFrame({"host": ["a", "a", "b"], "pid": [1, 2, 1]})
    lines = pl.DataFrame({"host": ["a", "c"], "pid": [2, 2]})
    (event, line), (wide_event, wide_line) = owners(events, lines, ["host", "pid"], ["host"])
    assert line[0] == event[1]
    assert len({*event.tolist(), *line.tolist()}) == 4
    assert wide_event[0] == wide_event[1] == wide_line[0]
    assert len({*wide_event.tolist(), *wide_line.tolist()}) == 3


def test_nothing_is_taken_from_nowhere() -> None:
    assert taken(pl.Series([7, 8]), np.array([1, NONE])).tolist() == [8, NONE]
    assert taken(pl.Series([], dtype=pl.Int64), np.array([NONE])).tolist() == [NONE]
