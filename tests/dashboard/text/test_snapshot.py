"""Sentences of the page on a snapshot."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sweepscope.dashboard.text import snapshot as texts

GIB = 1 << 30


def row(**changes: Any) -> dict[str, Any]:
    began = datetime(2026, 11, 20, 22, 41)
    return {
        "mem_source": "snapshot",
        "events": 619,
        "recorded_from": began,
        "recorded_until": began + timedelta(microseconds=391_200),
        "rank": None,
        "device": 0,
        "segments": 3,
        "peak_reserved_bytes": 8 * GIB,
        "fragmentation_at_peak": 0.115,
        "reserved_bytes": 8 * GIB,
        "active_bytes": 5 * GIB,
        "releasable_bytes": 2 * GIB,
        "oom_events": 0,
        "is_expandable": False,
        "allocator_settings": None,
        "violations": 0,
        "warnings": None,
    } | changes


def figures(**changes: Any) -> dict[str, tuple[str, str]]:
    found = texts.figures(row(**changes))
    return {label: (value.replace("\xa0", " "), note.replace("\xa0", " ")) for label, value, note in found}


def test_what_is_reserved_at_the_end_is_told_in_bytes() -> None:
    """A share of what is alive then is absurd where nearly all has been freed."""
    assert figures()["Reserved beyond active, at the peak"] == (
        "11.5 %",
        "at the end 2.0 GiB in whole segments, 1.0 GiB in pieces",
    )


def test_more_active_than_reserved_is_no_fragmentation() -> None:
    found = figures(fragmentation_at_peak=-0.884, violations=233, warnings="233 active above reserved")
    assert found["Reserved beyond active, at the peak"] == ("not known", "the record has more active than reserved")
    assert found["Contradictions"] == ("233", "233 active above reserved")


@pytest.mark.parametrize(
    ("violations", "expected"), [(0, ("0", "events and blocks agree")), (None, ("not checked", "")), (2, ("2", ""))]
)
def test_only_what_was_checked_is_said_to_agree(violations: int | None, expected: tuple[str, str]) -> None:
    assert figures(violations=violations)["Contradictions"] == expected


def test_only_a_snapshot_tells_the_allocators_settings() -> None:
    assert figures()["Failed allocations"] == ("0", "the allocator has its default settings")
    assert figures(mem_source="memory_stats", oom_events=2)["Failed allocations"] == ("2", "")
    assert figures(is_expandable=True)["Failed allocations"][1] == "expandable segments are on"


def test_a_record_shorter_than_a_tenth_of_a_second_has_a_length() -> None:
    assert "619 events · 0.391 s from 20 Nov 2026 22:41 UTC" in texts.meta(row()).replace("\xa0", " ")
