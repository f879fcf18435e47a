"""Attempts of many steps, which are taken log by log, are those of all logs at once."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.runs import attempts, long_logs
from sweepscope.pipeline.logs.runs.launches import LINES
from tests.properties import draws

LOGS = {
    "rising": [*range(1, 9)],
    "restarted": [1, 2, 3, 4, 5, 6, 3, 4, 5, 6, 7, 8],
    "printed twice": [1, 1, 2, 2, 3, 3],
    "single": [5],
}


def steps_of(names: list[str]) -> pl.DataFrame:
    rows = [
        {"source": 2 * source, "line_no": 10 * line, "step": step, "loss": 3 - 0.1 * step + 0.01 * line, "rank": 0}
        for source, name in enumerate(names)
        for line, step in enumerate(LOGS[name], start=1)
    ]
    return conform(pl.DataFrame(rows), STEP_FACTS)


def lines_at(*lines: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(lines, schema=LINES, orient="row")


@settings(max_examples=draws(200), deadline=None)
@given(
    names=st.lists(st.sampled_from(list(LOGS)), min_size=1, max_size=4),
    launched=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 140)), max_size=3),
    ended=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 140)), max_size=2),
)
def test_log_by_log_gives_the_attempts_of_all_at_once(
    names: list[str], launched: list[tuple[int, int]], ended: list[tuple[int, int]]
) -> None:
    sources = pl.Series("source", range(9))  # every other one has no steps
    given_to = (steps_of(names), lines_at(*launched), lines_at(*ended), sources, lines_at())
    whole = attempts.number_attempts(*given_to)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempts, "is_large", lambda _steps: True)
        patch.setattr(attempts, "SLICE_ROWS", 3)
        by_log = attempts.number_attempts(*given_to)
    for one, other in zip(by_log, whole, strict=True):
        assert_frame_equal(one, other)


LENGTH = 3_000
LONG = {
    "from a checkpoint": [*range(1, LENGTH), *range(LENGTH // 2, 2 * LENGTH), *range(LENGTH, 3 * LENGTH)],
    "from the begin": [*range(1, LENGTH), *range(1, 2 * LENGTH)],
    "another counter": [*range(1, LENGTH), *range(1, 100), *range(LENGTH, 2 * LENGTH)],
    "epochs": [*range(LENGTH), *range(LENGTH), *range(LENGTH)],
    "rising": [*range(3 * LENGTH)],
}


@pytest.mark.parametrize("name", list(LONG))
@pytest.mark.parametrize("launched", [0, LENGTH // 2, LENGTH])
def test_an_excerpt_shows_the_attempts_of_a_long_log(name: str, launched: int) -> None:
    line = pl.int_range(pl.len(), dtype=pl.Int64) + 1
    loss = 2 + 8 * (-line / LENGTH).exp() + 0.01 * (line * 7919 % 100)
    rows = pl.DataFrame({"step": LONG[name]}).with_columns(source=0, line_no=line, loss=loss, rank=0)
    given_to = (conform(rows, STEP_FACTS), lines_at((0, launched)), lines_at(), pl.Series("source", [0]), lines_at())
    whole = attempts.number_attempts(*given_to)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempts, "is_large", lambda _steps: True)
        for module in (attempts, long_logs):
            patch.setattr(module, "SLICE_ROWS", 777)
        patch.setattr(long_logs, "ENOUGH", 500)
        by_log = attempts.number_attempts(*given_to)
    for one, other in zip(by_log, whole, strict=True):
        assert_frame_equal(one, other)


def test_one_process_that_begins_again_is_read_from_an_excerpt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_logs, "ENOUGH", 500)
    rows = pl.DataFrame({"step": LONG["from a checkpoint"]}).with_columns(line_no=pl.int_range(pl.len()), rank=0)
    some = long_logs.excerpt(rows, [lines_at()])
    assert some is not None
    assert some.rows.height < rows.height / 5
