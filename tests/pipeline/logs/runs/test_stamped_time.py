"""Step times from the time stamps of lines, where a log states no time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from tests.pipeline.ingest_in_memory import tables_of

BEGIN = datetime(2026, 1, 31, 12)


def run_of(
    seconds: Sequence[float], *, form: str = "%Y-%m-%d %H:%M:%S.%f", every: int = 10, more: str = ""
) -> dict[str, object]:
    """The run of a log with a line every so many steps, printed so many seconds after its start."""
    rows = enumerate(seconds, 1)
    text = "".join(
        f"{(BEGIN + timedelta(seconds=at)).strftime(form)} INFO step {nth * every}: loss {9 - nth / 10:.4f}{more}\n"
        for nth, at in rows
    )
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    return run


def test_the_median_distance_of_lines_is_that_of_their_steps() -> None:
    pauses = [2.5] * 30
    pauses[0], pauses[12] = 40, 600  # compilation, and an evaluation
    run = run_of([sum(pauses[: nth + 1]) for nth in range(30)])
    assert (run["step_time_s"], run["step_time_basis"]) == (pytest.approx(0.25), "time_stamps")


def test_whole_seconds_are_measured_over_more_lines() -> None:
    run = run_of([nth * 0.7 for nth in range(60)], form="%Y-%m-%d %H:%M:%S", every=1)
    assert run["step_time_s"] == pytest.approx(0.7, rel=0.1)


@pytest.mark.parametrize(("block", "count"), [(8, 8), (4, 10)])
def test_evaluations_between_blocks_of_lines_do_not_count_though_stamps_are_of_whole_seconds(
    block: int, count: int
) -> None:
    """In blocks of four lines, none of the stretches over which whole seconds are measured is without an evaluation."""
    seconds = [nth * 1.8 + nth // block * 38 for nth in range(block * count)]
    run = run_of(seconds, form="%Y-%m-%d %H:%M:%S,%f", every=2)
    assert run["step_time_s"] == pytest.approx(0.9, rel=0.06)


@pytest.mark.parametrize(
    ("seconds", "more"),
    [
        pytest.param([nth * 2.5 for nth in range(30)], ", 250 ms/step", id="it states its time"),
        pytest.param([nth // 10 * 300 + nth % 10 / 1000 for nth in range(30)], "", id="printed together"),
        pytest.param([nth * 2.5 for nth in range(5)], "", id="too few"),
        pytest.param([30 - nth for nth in range(30)], "", id="the clock went back"),
    ],
)
def test_stamps_that_tell_no_time_of_a_step(seconds: Sequence[float], more: str) -> None:
    assert run_of(seconds, more=more)["step_time_basis"] != "time_stamps"


def test_stamps_tell_the_time_of_a_step_whose_batch_may_be_of_tokens() -> None:
    run = run_of([nth * 2.5 for nth in range(30)], more=", 13800 tokens/s, batch_size=4096, max_length=60")
    assert (run["step_time_s"], run["step_time_basis"]) == (pytest.approx(0.25), "time_stamps")
    assert run["tokens_per_s"] == 13800
