"""One hang: how far each rank came, when it waited, and where the ranks' paths part."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.charts import hang as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.text import hang as texts
from sweepscope.dashboard.view_models import hang as hangs
from sweepscope.schemas.tables.hangs import FLIGHT_RECORDS, NCCL_HANG_LINES
from tests.nccl_rows import flight_row, hang_line_row, hang_row


def lines(*rows: dict[str, Any]) -> pl.DataFrame:
    return NCCL_HANG_LINES.conform(pl.DataFrame(list(rows), infer_schema_length=None))


def records(*rows: dict[str, Any]) -> pl.DataFrame:
    frame = FLIGHT_RECORDS.conform(pl.DataFrame(list(rows), infer_schema_length=None))
    return frame.with_columns(first_seq=pl.col("seq").min().over("rank"), last_seq=pl.col("seq").max().over("rank"))


NO_RECORDS = records(flight_row()).head(0)


def test_a_rank_is_behind_or_ahead_by_its_own_words() -> None:
    states = hangs.states(
        hang_row(ranks_reporting="0,1", ranks_silent="2,3", num_ranks=4, suspect="2"),
        lines(
            hang_line_row(rank=0),
            hang_line_row(rank=1, line_no=952),
            hang_line_row("status", rank=1, last_enqueued_seq=120, last_completed_seq=117, line_no=953),
            hang_line_row("dump", rank=2, last_enqueued_seq=117, last_completed_seq=117, line_no=960),
        ),
        NO_RECORDS,
    )
    assert states["ahead"].to_list() == [0, 2, -1, None]
    assert states["last_completed_seq"].to_list() == [None, 117, 117, None]
    assert states["waited_s"].round(3).to_list() == [600.031, 600.031, None, None]
    assert states["line_no"].to_list() == [950, 952, 960, None]
    assert [texts.ahead_text(ahead) for ahead in states["ahead"]] == ["in it", "2 ahead", "1 behind", None]


def test_ranks_without_output_are_counted_as_the_picture_draws_them() -> None:
    hang = hang_row(ranks_reporting="1", ranks_silent="0,2,3", num_ranks=4, suspect="2")
    states = hangs.states(hang, lines(hang_line_row(rank=1)), NO_RECORDS)
    shown = {label: value for label, value, _ in texts.figures(hang, states)}
    assert (shown["Ranks that waited"], shown["Ranks without output"]) == ("1", "3"), "the suspect is silent as well"


def test_many_ranks_of_a_reason_are_ranges() -> None:
    many = ",".join(map(str, range(3, 53)))
    quoted = "numel 1,234,567"
    reason = f"4 ranks timed out; ranks {many} of the group printed no timeout; {quoted}"
    text = texts.hang_answer(hang_row(suspect=None, suspect_reason=reason))
    assert "ranks 3–52 of the group printed no timeout" in text
    assert quoted in text, "other numbers stay as they are"
    assert "**Suspect: ranks 4–6, 9.**" in texts.hang_answer(hang_row(suspect="4,5,6,9", suspect_reason="silent"))


def test_another_groups_status_does_not_count() -> None:
    said = lines(hang_line_row("status", rank=1, process_group="5", last_enqueued_seq=9))
    states = hangs.states(hang_row(num_ranks=2, ranks_reporting="0", ranks_silent="1", suspect=None), said, NO_RECORDS)
    assert states["last_enqueued_seq"].to_list() == [None, None]


def test_spans_begin_where_the_first_rank_began_to_wait() -> None:
    said = lines(
        hang_line_row(rank=0, ran_for_ms=600_000, printed_after_s=5.0),
        hang_line_row(rank=1, ran_for_ms=590_000, printed_after_s=0.0, op="BROADCAST", seq=3),
        hang_line_row("dump", rank=2, ran_for_ms=None, printed_after_s=6.0, op=None),
        hang_line_row(rank=3, printed_after_s=None),
    )
    states = hangs.states(
        hang_row(ranks_reporting="0", ranks_elsewhere="1", ranks_silent="2,3", suspect=None, num_ranks=4),
        said,
        NO_RECORDS,
    )
    found = hangs.spans(said, states, hang_row())
    assert [(span.rank, span.state) for span in found] == [(0, "waited"), (1, "elsewhere"), (2, "silent")]
    # Rank 0 began first, 595 s before rank 1 gave up.
    assert [(span.begin_s, span.end_s) for span in found] == [(0.0, 600.0), (5.0, 595.0), (None, 601.0)]
    figure = charts.draw_timeline(found, states["rank"].to_list(), LIGHT)
    quiet = [note.text for note in figure.layout.annotations]
    assert quiet == ["no line with a time"]  # rank 3


def test_the_sequence_shows_who_lacks_what_and_who_differs() -> None:
    rows = [flight_row(rank=rank, seq=seq) for rank in range(3) for seq in (116, 117)]
    rows += [flight_row(rank=0, seq=118, op_state="scheduled"), flight_row(rank=2, seq=118, input_sizes="[[7]]")]
    rows.append(flight_row(rank=3, seq=118, op_state="started"))
    steps = hangs.sequence(records(*rows), hang_row())
    assert steps.ranks == (0, 1, 2, 3)
    assert [steps.cells[rank][118] for rank in steps.ranks] == ["waits", "absent", "differs", "waits"]
    assert [steps.cells[rank][116] for rank in steps.ranks] == ["ended", "ended", "ended", "lost"]
    assert texts.sequence_alt(steps, hang_row()).endswith("4 ranks; rank 1 did not join.")
    assert texts.sequence_text(steps, [5]).endswith("No dump of rank 5.")
    assert charts.draw_sequence(steps, 118, LIGHT).layout.shapes[0].x0 == 1.5


def test_what_ranks_brought_is_grouped() -> None:
    rows = [flight_row(rank=rank, seq=118) for rank in (0, 1, 3)] + [flight_row(rank=2, seq=118, input_dtypes="Half")]
    variants = hangs.variants(records(*rows), 118)
    assert variants["ranks"].to_list() == ["0,1,3", "2"]
    assert variants["input_dtypes"].to_list() == ["Float", "Half"]


def test_the_last_stack_of_a_rank() -> None:
    rows = records(flight_row(rank=2, seq=116, stack="a.py:1 f"), flight_row(rank=2, seq=117, stack="b.py:2 g"))
    assert [(rank, row["stack"]) for rank, row in hangs.last_stacks(rows, [2, 3])] == [(2, "b.py:2 g")]


@pytest.mark.parametrize("text", ["", "/logs/a.log", ":7", "/a:x", "/a:" + "9" * 30])
def test_an_address_that_is_none(text: str) -> None:
    assert hangs.file_and_line(text) is None
