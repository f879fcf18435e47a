"""Pairs of runs that differ in one setting alone, and what it is worth in them."""

from __future__ import annotations

import polars as pl
import pytest

from tests.validation.knobs import TRADED, pairs, worth

BASE = {"model": "m", "num_gpus": "16", "dp": "4", "tp": "2", "pp": "2", "micro_batch_size": "1", "recompute": "none"}


def runs(*changes: dict[str, object]) -> pl.DataFrame:
    """Runs that are estimated to take a second each, unless a change states otherwise."""
    return pl.DataFrame([{**BASE, "measured": 1.0, "estimated": 1.0, "leaves_node": False, **one} for one in changes])


def test_a_setting_is_worth_what_runs_take_that_differ_in_it_alone() -> None:
    table = runs(
        {},
        {"micro_batch_size": "2", "measured": 0.5, "estimated": 0.8},
        {"micro_batch_size": "10", "measured": 0.25, "estimated": 0.8},  # the next after 2, not the next in letters
        {"micro_batch_size": "2", "recompute": "full", "measured": 0.6},
    )
    found = worth(table).rows_by_key("setting", named=True, unique=True)
    assert set(found) == {"micro_batch_size", "recompute"}
    batch = found["micro_batch_size"]
    assert (batch["pairs"], batch["pairs 10 % apart"]) == (2, 2)
    assert batch["adds, measured %"] == pytest.approx(-50)
    assert batch["estimated %"] == pytest.approx(100 * (0.8**0.5 - 1))
    assert batch["of these in the wrong order %"] == pytest.approx(50)  # alike in the estimate is not in order
    assert found["recompute"]["adds, measured %"] == pytest.approx(20)


def test_repeats_of_a_run_are_one_run() -> None:
    (pair,) = pairs(runs({"measured": 1.0}, {"measured": 4.0}, {"tp": "4", "dp": "2", "measured": 1.0}))
    assert pair.setting == "tp"
    assert pair.measured == pytest.approx(-0.6931, abs=1e-4)


def test_stages_for_ranks_beside_as_many_replicas() -> None:
    traded = runs({}, {"tp": "4", "pp": "1", "measured": 2.0, "leaves_node": True})
    (pair,) = pairs(traded)
    assert (pair.setting, pair.leaves_node) == (TRADED, True)
    assert list(pairs(runs({}, {"tp": "4", "pp": "1", "dp": "8"}))) == []


def test_runs_of_other_models_or_sizes_are_no_pair() -> None:
    assert list(pairs(runs({}, {"tp": "4", "model": "n"}, {"tp": "8", "num_gpus": "32"}))) == []
