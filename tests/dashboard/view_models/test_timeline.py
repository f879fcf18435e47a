"""Lanes, levels, groups and the first sign of a run's time line."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sweepscope.dashboard.charts import timeline as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.text import timeline as texts
from sweepscope.dashboard.view_models.timeline import GRADES, first_in_log, first_sign, grade, grouped, timeline
from sweepscope.schemas.vocab.timeline import ENTRY_KIND

START = datetime(2026, 11, 20, 22, 41)


def entry(minutes: float | None = 0, kind: str = "oom", **changes: Any) -> dict[str, Any]:
    return {
        "run_id": "a1",
        "entry_no": 1,
        "ts": None if minutes is None else START + timedelta(minutes=minutes),
        "is_time_printed": minutes is not None,
        "entry_source": "log",
        "entry_kind": kind,
        "rank": None,
        "host": None,
        "text": "CUDA out of <memory>",
        "source_path": "/logs/a1",
        "line_no": 7,
        "found": 1,
    } | changes


def test_every_kind_has_a_grade() -> None:
    assert {grade(kind) for kind in ENTRY_KIND} == set(GRADES)
    assert {grade(kind) for kind in ("launch", "first_step", "job_completed", "training_end")} == {"context"}


def test_entries_that_come_at_once_lie_on_levels_of_their_lane() -> None:
    found = timeline([entry(0), entry(0), entry(0, entry_source="memory"), entry(10)])
    assert found is not None
    assert found.lanes == ("log", "memory")
    assert [(point.lane, point.level) for point in found.points] == [(0, 0), (0, 1), (1, 0), (0, 0)]


def test_without_times_there_is_no_chart() -> None:
    assert timeline([entry(None), entry(None)]) is None
    assert timeline([]) is None


def test_a_long_wait_in_the_queue_is_left_of_the_first_view() -> None:
    queued = entry(-300, "job_submitted", entry_source="scheduler")
    found = timeline([queued, entry(0), entry(10)])
    assert found is not None
    assert found.is_queue_cut
    assert found.begin > queued["ts"]
    short = timeline([entry(-5, "job_submitted", entry_source="scheduler"), entry(0), entry(10)])
    assert short is not None
    assert not short.is_queue_cut


def test_the_first_sign_is_found_in_any_file_and_the_log_s_own_apart() -> None:
    rows = [entry(0, "launch"), entry(2, "suspect", entry_source="flight_recorder"), entry(12, "hang")]
    assert first_sign(rows) is rows[1]
    assert first_in_log(rows) is rows[2]
    assert first_sign([entry(0, "launch")]) is None
    assert "The log's first line on it came 10 min later." in texts.sign(rows)
    assert texts.sign([entry(0, "launch")]) == ""


def test_what_each_rank_reports_is_one_group() -> None:
    rows = [entry(0, text=f"rank {rank} failed", rank=rank, host=f"n{rank % 2}") for rank in range(4)]
    (group,) = grouped(rows)
    assert (group.count, group.ranks, group.hosts) == (4, (0, 1, 2, 3), ("n0", "n1"))
    assert texts.group_ranks(group) == "rank 0–3"
    assert [one.count for one in grouped([entry(0), entry(0, "hang"), entry(1)])] == [2, 1]


def test_texts_of_logs_are_no_tags_on_the_chart() -> None:
    found = timeline([entry(0), entry(None)])
    assert found is not None
    figure = charts.draw(found, LIGHT)
    assert [text for trace in figure.data for text in trace.hovertext if "<memory>" in text] == []
    assert figure.data[0].marker.symbol == ("x",)
