"""Intervals of other frameworks' runs: for estimates of a framework that nothing was measured of."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.pooled import without_table
from sweepscope.pipeline.estimate.calibration.transfer_tables import transfers
from sweepscope.pipeline.estimate.learned.record_file import find_record
from sweepscope.pipeline.estimate.learned.transfer import (
    OF_OTHERS,
    Transfer,
    load_transfers,
    quantiles_of,
    render_transfers,
    transfer_interval,
)
from sweepscope.pipeline.estimate.physics.profile import CALIBRATION, choose_profile, load_profiles
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame

ROW = {
    **{"model": "Llama 2 7B", "accelerator": "H100", "precision": "bf16", "recompute": "none", "seq_len": "4096"},
    **{"num_gpus": "8", "dp": "8", "tp": "1", "pp": "1", "micro_batch_size": "1", "grad_accum": "8"},
    "zero_stage_or_fsdp": "zero3",
}


def table(name: str, *, rows: int, middle: float) -> Transfer:
    ratios = np.log(middle) + np.linspace(-0.1, 0.1, rows)
    return Transfer(name, "hopper", False, rows, quantiles_of(ratios), ())


def test_a_table_counts_once_however_many_rows_it_has() -> None:
    few = transfer_interval([table("a", rows=10, middle=1.0), table("b", rows=10, middle=2.0)], "time")
    many = transfer_interval([table("a", rows=10, middle=1.0), table("b", rows=10_000, middle=2.0)], "time")
    assert few is not None
    assert many is not None
    assert few.low == pytest.approx(many.low, rel=0.01)
    assert few.high == pytest.approx(many.high, rel=0.01)
    assert few.low < 1.0
    assert few.high > 2.0
    assert many.runs == 10_010
    assert transfer_interval([], "time") is None
    assert transfer_interval([table("a", rows=10, middle=1.0)], "memory") is None


def test_a_file_holds_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    found = (table("a", rows=10, middle=1.0), table("b", rows=20, middle=2.0))
    path.write_text(render_transfers(found))
    assert load_transfers(path) == found
    other = tmp_path / "old.json"
    other.write_text(render_transfers(found).replace('"equations": ', '"equations": 9'))
    assert load_transfers(other) == ()


def test_the_bundled_file_is_of_the_tables_and_equations_in_force() -> None:
    remedy = "The physics changed: sweepscope calibrate --published --out data/calibration"
    found, bundled = transfers(without_table), load_transfers()
    assert [(one.table, one.rows) for one in found] == [(one.table, one.rows) for one in bundled], remedy
    for now, then in zip(found, bundled, strict=True):
        assert now.time == pytest.approx(then.time, abs=0.02), remedy


@pytest.mark.parametrize("what", ["time", "memory"])
def test_intervals_hold_four_fifths_of_a_table_that_is_left_out(what: str) -> None:
    known, strata = load_transfers(), defaultdict(list)
    for one in transfers(without_table, tuned=False):
        ratios = np.exp(getattr(one, what))
        rest = [other for other in known if other.table != one.table]
        others = transfer_interval(rest, what, one.generation, is_below_16_bit=one.is_below_16_bit)
        if ratios.size and others is not None:
            inside = np.mean((ratios >= others.low) & (ratios <= others.high))
            strata[one.generation, one.is_below_16_bit].append(inside)
    assert 0.7 <= np.mean([np.mean(inside) for inside in strata.values()]) <= 0.92
    # Several tables say how far a stratum's tables lie from each other.
    assert all(0.7 <= np.mean(inside) <= 0.95 for inside in strata.values() if len(inside) > 1)


def test_tables_of_the_same_generation_and_precision_count_most() -> None:
    slow, fast = table("a", rows=10, middle=2.0), replace(table("b", rows=10, middle=1.0), generation="ampere")
    third = replace(table("c", rows=10, middle=1.5), is_below_16_bit=True)
    alike = transfer_interval([slow, fast, third], "time")
    near, far = (transfer_interval([slow, fast, third], "time", name) for name in ("hopper", "ampere"))
    assert alike is not None
    assert near is not None
    assert far is not None
    assert far.middle < alike.middle <= near.middle
    assert "hopper cards most" in near.basis
    assert transfer_interval([slow, fast], "time", "abacus") == transfer_interval([slow, fast], "time")
    short = transfer_interval([slow, fast, third], "time", "hopper", is_below_16_bit=True)
    assert short is not None
    assert short.middle < near.middle


def test_only_rows_without_an_interval_of_their_own_get_one() -> None:
    own = {**ROW, "zero_stage_or_fsdp": "zero1"}
    got = estimate_frame(pl.DataFrame([ROW, {**own, "framework": "nanotron"}, {**ROW, "framework": "nanotron"}]))
    unknown, known, unseen = got.iter_rows(named=True)
    assert "other frameworks" in unknown["est_interval_basis"]
    assert unknown["est_step_time_lo_s"] < unknown["est_step_time_s"] < unknown["est_step_time_hi_s"]
    assert unknown["est_mem_lo_bytes"] < unknown["est_mem_bytes"] < unknown["est_mem_hi_bytes"]
    assert unknown["est_mfu_lo"] < unknown["est_mfu"] < unknown["est_mfu_hi"]
    assert "of hopper-nanotron" in known["est_interval_basis"]
    assert unseen["est_interval_basis"] == unknown["est_interval_basis"]  # nanotron's sweep had no ZeRO-3
    refused = estimate_frame(pl.DataFrame([{**ROW, "accelerator": "abacus"}])).row(0, named=True)
    assert refused["est_interval_basis"] is None


def test_an_interval_of_others_runs_reaches_as_far_as_those_of_other_frameworks() -> None:
    one = {**ROW, "zero_stage_or_fsdp": "zero1"}
    theirs, unknown = estimate_frame(pl.DataFrame([{**one, "framework": "nanotron"}, one])).iter_rows(named=True)
    record = find_record(load_profiles()["hopper-nanotron"])
    assert record is not None
    alone = record.penalised.interval("DP only · ZeRO-1", "")
    assert alone is not None
    reach = transfer_interval(load_transfers(), "time", "hopper")
    assert reach is not None
    centre = theirs["expected_step_time_s"]
    assert theirs["est_step_time_hi_s"] == pytest.approx(max(alone.high, reach.high) * centre)
    assert theirs["est_step_time_hi_s"] / centre > 1.3 > alone.high
    assert theirs["est_step_time_lo_s"] <= reach.low * centre * (1 + 1e-9)
    assert theirs["est_mfu_lo"] == pytest.approx(
        theirs["est_mfu"] * theirs["est_step_time_s"] / theirs["est_step_time_hi_s"]
    )
    assert "on any other cluster" in theirs["est_interval_basis"]
    assert "on any other cluster" not in unknown["est_interval_basis"]
    assert OF_OTHERS not in theirs


def test_an_interval_of_one_s_own_runs_stays_as_narrow_as_they_are(tmp_path: Path) -> None:
    for path in CALIBRATION.glob("*.*"):
        shutil.copy2(path, tmp_path / path.name)
    row = pl.DataFrame([{**ROW, "zero_stage_or_fsdp": "zero1", "framework": "nanotron"}])
    theirs = estimate_frame(row).row(0, named=True)
    own = estimate_frame(row, partial(choose_profile, folder=tmp_path)).row(0, named=True)
    assert own["est_step_time_s"] == theirs["est_step_time_s"]
    assert own["est_step_time_hi_s"] < theirs["est_step_time_hi_s"]
    assert "other cluster" not in own["est_interval_basis"]
