from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.view_models.ranking import ranked_rows


def ranked(*speeds: float, **columns: list[Any]) -> pl.DataFrame:
    count = len(speeds)
    return pl.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(count)],
            "layout": [f"DP{i}" for i in range(count)],
            "variant": [None] * count,
            "mfu": [speed / 10_000 for speed in speeds],
            "tokens_per_s_per_gpu": list(speeds),
            "repeats": [1] * count,
            "repeat_speeds": [str(speed) for speed in speeds],
            "low_tokens_per_s_per_gpu": list(speeds),
            "high_tokens_per_s_per_gpu": list(speeds),
            "winner_lead": [speeds[0] / speed - 1 for speed in speeds],
            "ties_with_first": [speeds[0] / speed - 1 <= 0.01 for speed in speeds],
        }
        | columns,
        schema_overrides={"variant": pl.String, "mfu": pl.Float64, "ties_with_first": pl.Boolean},
    )


def test_rows_show_their_gap_to_the_winner() -> None:
    rows = ranked_rows(ranked(4000.0, 3800.0, 2000.0))
    assert [(row.value, row.gap.replace("\xa0", " "), row.share) for row in rows] == [
        ("40.0", "", 1.0),
        ("38.0", "+5.3 %", 0.95),
        ("20.0", "2.0 ×", 0.5),
    ]
    assert [row.is_winner for row in rows] == [True, False, False]
    assert not any(row.is_tied for row in rows)


def test_bars_leave_room_for_intervals_and_mark_each_repeat() -> None:
    of_two = {"repeats": [2, 1], "repeat_speeds": ["3900 4100", "3800"]}
    first, second = ranked_rows(
        ranked(
            4000.0,
            3800.0,
            low_tokens_per_s_per_gpu=[3000.0, 3700.0],
            high_tokens_per_s_per_gpu=[5000.0, 3900.0],
            **of_two,
        )
    )
    assert (first.share, second.share) == (0.8, 0.76)
    assert first.interval == (0.75, 1.25)
    assert (first.repeats, second.repeats) == ((0.975, 1.025), ())


def test_an_mfu_that_contradicts_the_ranking_is_not_shown() -> None:
    rows = ranked_rows(ranked(7530.0, 5220.0, mfu=[0.35, 0.40]))
    assert [(row.value, row.gap.replace("\xa0", " ")) for row in rows] == [("7,530", ""), ("5,220", "+44.3 %")]
    assert [row.share for row in rows] == pytest.approx([1.0, 5220 / 7530])


def test_all_rows_within_the_noise_of_the_winner_tie() -> None:
    rows = ranked_rows(ranked(4000.0, 3990.0, 3970.0, 3000.0))
    assert [row.is_tied for row in rows] == [True, True, True, False]


def test_one_missing_mfu_turns_all_rows_to_throughput() -> None:
    rows = ranked_rows(ranked(7530.0, 5220.0, mfu=[0.4, None]))
    assert [(row.value, row.gap.replace("\xa0", " ")) for row in rows] == [("7,530", ""), ("5,220", "+44.3 %")]


def test_only_the_first_rows_are_drawn_and_none_of_an_empty_cell() -> None:
    assert len(ranked_rows(ranked(*range(90, 10, -10)), limit=6)) == 6
    assert ranked_rows(ranked()) == []


def test_layouts_of_several_versions_and_clusters_are_told_apart() -> None:
    assert [row.ran_by for row in ranked_rows(ranked(3.0, 2.0, framework_version=["1", "1"]))] == ["", ""]
    several = ranked(
        4.0, 3.0, 2.0, 1.0, framework_version=["2", "1", "1", None], cluster=["north", "north", "south", "south"]
    ).with_columns(layout=pl.lit("DP8"))
    assert [row.ran_by for row in ranked_rows(several, limit=2)] == [
        "version 2 · cluster north",
        "version 1 · cluster north",
    ]
    assert len({row.ran_by for row in ranked_rows(several)}) == 4


def test_layouts_that_differ_otherwise_say_in_what() -> None:
    rows = ranked_rows(ranked(2.0, 1.0, variant=["async TP", None], layout=["DP1", None]))
    assert [row.layout for row in rows] == ["DP1 · async TP", "layout unknown"]
