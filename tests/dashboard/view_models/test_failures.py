"""Rows of the page on failures: which bars are drawn, which settings stand out."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.view_models.failures import endings_by, overall_rate, patterns, rates_of
from sweepscope.schemas.registry import VIEWS

Row = dict[str, Any]


def rate(value: str, *, dimension: str = "sweep", judged: int = 10, failed: int = 4, **changes: Any) -> Row:
    """A row of `failure_rates` whose failures all ran out of memory; the interval is given, not computed."""
    return {
        "origin": "measured",
        "sweep": None,
        "dimension": dimension,
        "value": value,
        "runs_tried": judged,
        "runs_judged": judged,
        "runs_completed": judged - failed,
        "runs_failed": failed,
        "runs_held": 0,
        "runs_oom": failed,
        "runs_hang": 0,
        "runs_infra": 0,
        "runs_timeout": 0,
        "runs_crash": 0,
        "runs_unexplained": 0,
        "failure_rate": failed / judged,
        "failure_rate_low": max(0.0, failed / judged - 0.2),
        "failure_rate_high": min(1.0, failed / judged + 0.2),
        "gpu_hours_lost": 0.0,
        "failures_without_gpu_hours": 0,
    } | changes


def frame(*rows: Row) -> pl.DataFrame:
    return VIEWS["failure_rates"].conform(pl.DataFrame(list(rows), infer_schema_length=None))


def test_bars_add_up_to_the_tries() -> None:
    rows = endings_by(frame(rate("a", judged=10, failed=4, runs_tried=13)))
    (row,) = rows.select("completed", "oom", "undecided", "runs_tried").to_dicts()
    assert row == {"completed": 6, "oom": 4, "undecided": 3, "runs_tried": 13}


def test_names_come_with_most_failures_first_and_numbers_in_their_order() -> None:
    named = endings_by(frame(rate("few", failed=1), rate("many", failed=9)))
    assert named["value"].to_list() == ["many", "few"]
    counted = endings_by(frame(*(rate(v, dimension="num_nodes", failed=f) for v, f in (("1", 1), ("2", 9), ("16", 5)))))
    assert counted["value"].to_list() == ["1", "2", "16"]


def test_values_beyond_the_limit_are_summed_in_one_row() -> None:
    rows = endings_by(frame(*(rate(f"s{i}", failed=i) for i in range(6))), limit=3)
    assert rows.select("value", "oom", "others").rows() == [("s5", 5, 0), ("s4", 4, 0), ("others", 0 + 1 + 2 + 3, 4)]
    assert rows["runs_tried"].sum() == 60


def test_nothing_tried_makes_no_bars() -> None:
    assert endings_by(frame()).is_empty()


def test_settings_are_ranked_by_what_is_sure() -> None:
    rates = frame(
        rate("8", dimension="mbs", judged=40, failed=30, failure_rate_low=0.6),
        rate("1", dimension="mbs", judged=40, failed=4, failure_rate_low=0.03),
        rate("16", dimension="mbs", judged=6, failed=6, failure_rate_low=0.55),
    )
    found = patterns(rates, 0.58)
    assert [(one.name, one.is_above) for one in found] == [("MBS8", True), ("MBS16", False), ("MBS1", False)]


def test_settings_that_all_runs_share_or_few_runs_have_say_nothing() -> None:
    rates = frame(
        rate("bf16", dimension="precision"),
        rate("1", dimension="tp"),
        rate("2", dimension="tp", judged=4, failed=4),
        rate("h100", dimension="accelerator"),
        rate("a100", dimension="accelerator"),
    )
    assert [one.name for one in patterns(rates, 0.1)] == ["TP1"]


@pytest.mark.parametrize(("judged", "failed", "found"), [(10, 4, 0.4), (3, 0, 0.0), (0, 0, None)])
def test_the_overall_rate_needs_a_judged_run(judged: int, failed: int, found: float | None) -> None:
    assert overall_rate({"runs_judged": judged, "runs_failed": failed}) == found


def test_rates_of_some_dimensions_keep_their_order() -> None:
    rows = pl.DataFrame([rate("2", dimension="tp"), rate("a"), rate("10", dimension="tp"), rate("b", dimension="host")])
    assert rates_of(rows, "tp", "host")["value"].to_list() == ["2", "10", "b"]
    assert rates_of(rows, "pp").is_empty()
