"""Who led a cell when, and what new versions of the software changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.run_rows import Row, completed_frame, open_store, rows_of, run_row

_BEGIN = datetime(2026, 11, 2, 8, 0)


def ran(run_id: str, day: int | None, speed: float, **changes: Any) -> Row:
    at = None if day is None else _BEGIN + timedelta(days=day)
    return run_row(run_id, started_at=at, tokens_per_s_per_gpu=speed, **changes)


TP2: Row = {"dp": 4, "tp": 2, "gas": 32}


def ask(view: str, *runs: Row) -> list[Row]:
    return rows_of(open_store(completed_frame(*runs)), f"FROM {view}")


def test_the_lead_passes_from_layout_to_layout() -> None:
    runs = [
        ran("first", 0, 100.0),
        ran("slower", 1, 90.0, **TP2),
        ran("again", 2, 101.0),  # the leader's own record is no flip
        ran("taken", 3, 101.5, **TP2),
        ran("other version", 4, 120.0, **TP2, torch_version="2.9"),
        ran("untimed", None, 500.0, mbs=1, gas=32),
        ran("failed", 5, 900.0, status="oom"),
        ran("elsewhere", 6, 900.0, origin="simulated"),
    ]
    flips = [row for row in ask("lead_history", *runs) if row["origin"] == "measured"]
    flips.sort(key=lambda row: row["flip_no"])
    assert [(row["run_id"], row["run_id_before"]) for row in flips] == [
        ("first", None),
        ("taken", "again"),
        ("other version", "taken"),
    ]
    assert [row["led_from"] for row in flips] == [_BEGIN + timedelta(days=day) for day in (0, 3, 4)]
    assert [row["led_until"] for row in flips] == [row["led_from"] for row in flips[1:]] + [None]
    assert [row["margin"] for row in flips] == [None, pytest.approx(0.5 / 101), pytest.approx(18.5 / 101.5)]
    assert [row["is_tie"] for row in flips] == [False, True, False]


def test_a_version_that_is_slower_than_the_noise_is_a_regression() -> None:
    old, new = {"framework_version": "1.0"}, {"framework_version": "9f3c0a7712aa41d0bb5e0c5d61fbd0a1e2c4f6a8"}
    cases = {
        "regression": (100.0, 90.0, "slower"),
        "faster": (100.0, 110.0, "faster"),
        "noise": (100.0, 98.5, "noise"),
    }
    runs = [
        ran(f"{case}{day}", day, speed, model=case, **version)
        for case, (before, after, _) in cases.items()
        for day, (speed, version) in enumerate(((before, old), (after, new)))
    ]
    runs += [
        ran("north", 0, 100.0, model="moved", cluster="North", **old),
        ran("south", 1, 50.0, model="moved", cluster="South", **new),  # another cluster is no other version
        ran("untimed", None, 10.0, model="noise", **{"framework_version": "0.9"}),
    ]
    found = {row["model"]: row for row in ask("version_changes", *runs)}
    assert {case: row["change_verdict"] for case, row in found.items()} == {
        case: verdict for case, (*_, verdict) in cases.items()
    }
    row = found["regression"]
    assert (row["framework_version_before"], row["framework_version"]) == (
        old["framework_version"],
        new["framework_version"],
    )
    assert (row["run_id_before"], row["run_id"], row["change"]) == ("regression0", "regression1", pytest.approx(-0.1))


def test_repeats_make_a_small_regression_certain() -> None:
    def of(version: str, day: int, *speeds: float) -> list[Row]:
        return [ran(f"{version}{i}", day + i, speed, torch_version=version) for i, speed in enumerate(speeds)]

    (once,) = ask("version_changes", *of("2.8", 0, 100.0), *of("2.9", 9, 98.5))
    (often,) = ask("version_changes", *of("2.8", 0, 100.0, 100.2, 99.8, 100.1), *of("2.9", 9, 98.5, 98.4, 98.6, 98.5))
    assert (once["change_verdict"], often["change_verdict"]) == ("noise", "slower")
    assert (often["repeats_before"], often["repeats"]) == (4, 4)
