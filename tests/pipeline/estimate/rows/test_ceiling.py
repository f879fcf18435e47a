"""Published runs with gaps: what is filled in, what bounds them, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.asking import OK
from sweepscope.pipeline.estimate.rows.ceiling import CEILING, ceilings
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.reference.clusters import find_cluster
from tests.pipeline.estimate.rows.test_estimate_rows import row


def bound(**changes: Any) -> dict[str, Any]:
    """The ceiling of a row that states its batch of 128 sequences beside its layout."""
    entry = row(**{"global_batch_size_seqs": 128, "grad_accum": None, **changes})
    return ceilings(pl.DataFrame([{k: None if v is None else str(v) for k, v in entry.items()}])).row(0, named=True)


def test_a_run_that_states_everything_is_bounded_by_its_own_estimate() -> None:
    got = bound(vpp=1)
    estimated = estimate_frame(pl.DataFrame([{k: str(v) for k, v in row(vpp=1).items()}]))["est_mfu"].item()
    assert got["ceiling_status"] == OK
    assert got["ceiling_mfu"] == pytest.approx(estimated)
    assert got["ceiling_layout"] == "DP4 TP2 PP1 · GAS16 MBS2 · Z1"
    assert got["ceiling_chosen"] is None
    assert got["ceiling_fits"] is True


def test_what_is_not_stated_is_the_fastest_that_may_fit() -> None:
    got = bound(micro_batch_size=None, zero_stage_or_fsdp=None)
    card = find_cluster("H100-SXM-80GB")
    assert card is not None
    room = 1.2 * card.memory_bytes - choose_profile(card.generation, None).outside_bytes
    best, is_within = 0.0, False
    for mbs, stage in itertools.product((1, 2, 4, 8, 16), (0, 1, 2, 3)):
        entry = row(vpp=1, micro_batch_size=mbs, grad_accum=32 // mbs, zero_stage_or_fsdp=f"zero{stage}")
        estimated = estimate_frame(pl.DataFrame([{k: str(v) for k, v in entry.items()}])).row(0, named=True)
        if estimated["est_mem_reserved_bytes"] <= room and estimated["est_mfu"] > best:
            best, is_within = estimated["est_mfu"], estimated["est_fits"]
    assert got["ceiling_mfu"] == pytest.approx(best)
    assert got["ceiling_fits"] is is_within
    assert got["ceiling_chosen"] == "fastest micro-batch, ZeRO stage"


def test_more_freedom_never_lowers_the_bound() -> None:
    stated = bound()["ceiling_mfu"]
    freed = bound(micro_batch_size=None)["ceiling_mfu"]
    assert bound(micro_batch_size=None, tp=None, dp=None, pp=None, recompute=None)["ceiling_mfu"] >= freed >= stated


def test_the_stated_replicas_are_kept() -> None:
    assert "DP4 " in bound(tp=None, pp=None, micro_batch_size=None)["ceiling_layout"]


def test_the_peak_is_that_of_bf16_also_for_runs_in_fp8() -> None:
    mixed = bound(precision="fp8")
    entry = pl.DataFrame([{k: str(v) for k, v in row(vpp=1, precision="fp8").items()}])
    over_fp8_peak = estimate_frame(entry)["est_mfu"].item()
    assert mixed["ceiling_mfu"] == pytest.approx(over_fp8_peak * 1979 / 989, rel=2e-3)


def test_a_batch_printed_in_round_tokens_is_met_roughly() -> None:
    exact = bound(micro_batch_size=None, global_batch_size_seqs=None, global_batch_tokens=128 * 4096)
    rounded = bound(micro_batch_size=None, global_batch_size_seqs=None, global_batch_tokens=520_000)
    assert exact["ceiling_status"] == rounded["ceiling_status"] == OK
    assert rounded["ceiling_mfu"] == pytest.approx(exact["ceiling_mfu"], rel=0.03)
    assert (
        bound(global_batch_size_seqs=None, global_batch_tokens=9_000)["ceiling_status"] == "the batch does not divide"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_gpus": None, "dp": None}, "num_gpus not stated"),
        ({"global_batch_size_seqs": None, "micro_batch_size": None}, "global batch not stated"),
        ({"accelerator": None}, "accelerator not stated"),
        ({"tp": 3, "dp": None}, "no layout of 8 accelerators has the stated degrees"),
        ({"tp": "many"}, "not understood: tp = many"),
        ({"seq_len": None}, "sequence length not stated"),
    ],
)
def test_what_bounds_nothing_says_why(changes: dict[str, Any], reason: str) -> None:
    got = bound(**changes)
    assert got["ceiling_status"] == reason
    assert got["ceiling_mfu"] is None


def test_rows_and_their_order_are_kept_and_asking_twice_changes_nothing() -> None:
    table = published_table("frontier_configs").head(12)
    once = ceilings(table)
    assert once.columns == [*table.columns, *CEILING]
    assert once.select(table.columns).equals(table)
    assert ceilings(once).equals(once)


def test_the_bundled_frontier_is_bounded_where_it_states_enough() -> None:
    """Nothing was fitted on these runs: constants of H100 alone come within an eighth."""
    found = ceilings(published_table("frontier_configs")).filter(pl.col("ceiling_status") == OK)
    nemotron = found.filter(pl.col("model") == "Nemotron-4 340B")
    assert nemotron.height == 3
    ratio = nemotron["mfu_pct"].cast(pl.Float64) / 100 / nemotron["ceiling_mfu"]
    assert ratio.is_between(0.875, 1.125).all()
    assert found.height > 30
