"""The waterfall loses exactly what lies between the peak and the MFU."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.waterfall import KERNELS, TERMS, UNEXPLAINED, WATERFALL, waterfall
from tests.pipeline.estimate.rows.test_estimate_rows import row


def estimated(**changes: object) -> pl.DataFrame:
    return estimate_frame(pl.DataFrame([row(**changes)]))


def test_an_estimate_loses_from_the_peak_to_its_mfu() -> None:
    frame = estimated(tp="4", dp="2")
    losses = waterfall(frame, measured=None)
    assert losses.schema == WATERFALL
    assert losses["term"].to_list() == [term.name for term in TERMS]
    assert losses["before"][0] == pytest.approx(1.0, abs=1e-12)
    assert losses["after"][-1] == pytest.approx(frame["est_mfu"][0], abs=1e-12)
    assert losses["seconds"].sum() + frame["est_mfu"][0] * frame["est_step_time_s"][0] == pytest.approx(
        frame["est_step_time_s"][0], rel=1e-12
    )
    assert dict(losses.select("term", "seconds").iter_rows())["tp"] == frame["est_time_tp_s"][0] > 0


@pytest.mark.parametrize(("times_slower", "sign"), [(5.0, 1), (0.9, -1)])
def test_what_was_measured_beyond_the_estimate_is_unexplained(times_slower: float, sign: int) -> None:
    frame = estimated()
    measured = times_slower * frame["est_step_time_s"][0]
    losses = waterfall(frame.with_columns(step_time_s=measured))
    last = losses.row(-1, named=True)
    assert last["term"] == UNEXPLAINED
    assert last["share"] == pytest.approx(1 - 1 / times_slower)
    assert last["share"] * sign > 0
    assert last["after"] == pytest.approx(frame["est_mfu"][0] / times_slower)
    assert losses["share"].sum() + last["after"] == pytest.approx(1.0, abs=1e-12)


def test_rows_keep_apart_and_those_without_an_estimate_are_left_out() -> None:
    frame = estimate_frame(pl.DataFrame([row(accelerator="Cerebras"), row(), row(tp="2", dp="4")]))
    losses = waterfall(frame)
    assert losses["row"].unique().to_list() == [1, 2]
    levels = losses.group_by("row", maintain_order=True).agg(pl.col("after").last())
    assert levels["after"].to_list() == pytest.approx(frame["est_mfu"][1:].to_list())
    assert losses.filter(pl.col("term") == KERNELS)["share"].min() > 0


def test_a_frame_without_estimates_gives_an_empty_waterfall() -> None:
    losses = waterfall(estimate_frame(pl.DataFrame([row(accelerator="Cerebras")])))
    assert losses.is_empty()
    assert losses.schema == WATERFALL
