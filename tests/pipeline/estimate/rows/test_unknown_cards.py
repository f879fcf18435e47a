"""Accelerators that no table has are estimated by what a row states of them; generations without runs less surely."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.learned.transfer import is_measured
from sweepscope.pipeline.estimate.physics.profile import choose_profile, load_profiles
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.reference.clusters import ASSUMED_MEMORY_BYTES, find_cluster, known_cards

ROW = {
    **{"model": "Llama 2 7B", "num_gpus": "8", "gpus_per_node": "8", "seq_len": "4096", "precision": "bf16"},
    **{"dp": "8", "tp": "1", "pp": "1", "micro_batch_size": "1", "grad_accum": "4", "zero_stage_or_fsdp": "zero3"},
}


def estimated(accelerator: str, **facts: str | None) -> dict[str, Any]:
    return estimate_frame(pl.DataFrame([{**ROW, "accelerator": accelerator, **facts}])).row(0, named=True)


def reach(row: dict[str, Any]) -> float:
    """The upper over the lower end of its interval."""
    return float(row["est_step_time_hi_s"] / row["est_step_time_lo_s"])


def test_without_a_peak_the_refusal_names_the_column() -> None:
    status = estimated("Sunway SW26010")["est_status"]
    assert status.startswith("unknown accelerator: Sunway SW26010")
    assert "peak_tflops_bf16" in status


def test_an_accelerator_is_estimated_by_the_peak_that_a_row_states() -> None:
    slow, fast = (estimated("Sunway SW26010", peak_tflops_bf16=peak) for peak in ("150", "300"))
    assert slow["est_status"] == fast["est_status"] == "ok"
    assert 1.7 < slow["est_step_time_s"] / fast["est_step_time_s"] < 2.1
    assert "Sunway SW26010 by its peak of 150 TFLOP/s" in slow["est_assumptions"]
    assert "80 GB" in slow["est_assumptions"]
    assert pytest.approx(80e9) == ASSUMED_MEMORY_BYTES


def test_how_sure_an_estimate_is_follows_from_what_is_known_of_the_accelerator() -> None:
    unknown, published, measured = (
        reach(estimated(name, peak_tflops_bf16="312", framework="megatron"))
        for name in ("Sunway SW26010", "Ascend 910B", "A100-SXM-80GB")
    )
    assert not is_measured("ascend")
    assert is_measured("ampere")
    assert unknown > published > measured


def test_memory_and_bandwidths_count_where_they_are_stated() -> None:
    peak = {"peak_tflops_bf16": "300"}
    assert estimated("Sunway SW26010", **peak)["est_fits"]
    assert not estimated("Sunway SW26010", **peak, device_memory_gb="16")["est_fits"]
    assert not estimated("Sunway SW26010 16GB", **peak)["est_fits"]
    usual = estimated("Sunway SW26010", **peak)["est_step_time_s"]
    assert estimated("Sunway SW26010", **peak, memory_gb_per_s="300")["est_step_time_s"] > 1.1 * usual
    assert estimated("Sunway SW26010", **peak, link_gb_per_s="5")["est_step_time_s"] > 1.1 * usual
    eight = {**peak, "precision": "fp8"}
    assert "has none" in estimated("Sunway SW26010", **eight)["est_assumptions"]
    assert estimated("Sunway SW26010", **eight, peak_tflops_fp8="600")["est_step_time_s"] < 0.9 * usual


@pytest.mark.parametrize("peak", ["989", "100", "989 dense", "-", None])
def test_the_peak_of_a_known_accelerator_is_its_own(peak: str | None) -> None:
    assert estimated("H100", peak_tflops_bf16=peak)["est_step_time_s"] == estimated("H100")["est_step_time_s"]


def test_a_processor_is_none_whatever_its_peak() -> None:
    assert "is no accelerator" in estimated("Xeon Max 9470 CPU", peak_tflops_bf16="100")["est_status"]


def test_more_devices_in_a_host_than_packages_are_the_devices_of_packages() -> None:
    row = {"num_gpus": "16", "dp": "16", "grad_accum": "2"}
    dies = estimated("MI250X", **row)
    packages = estimated("MI250X", **{**row, "gpus_per_node": "4"})
    assert dies["est_step_time_s"] == estimated("MI250X-GCD", **row)["est_step_time_s"]
    assert dies["est_step_time_s"] > 1.5 * packages["est_step_time_s"]
    for name, host in (("Intel Data Center GPU Max 1550", 12), ("Trainium", 32), ("Trainium2", 64), ("MI250", 8)):
        package, device = find_cluster(name), find_cluster(name, gpus_per_node=host)
        assert package is not None
        assert device is not None
        assert device.accelerator != package.accelerator
        assert device.peak_flops * host == pytest.approx(package.peak_flops * package.gpus_per_node, rel=0.01)
        assert device.memory_bytes * host == pytest.approx(package.memory_bytes * package.gpus_per_node, rel=0.01)


def test_every_card_has_bandwidths_and_constants() -> None:
    cards = [find_cluster(name) for name in known_cards()]
    assert all(
        card is not None and min(card.memory_bytes, card.link_bytes_per_s, card.processors) > 0 for card in cards
    )
    generations = {card.generation for card in cards if card is not None}
    with_own = {name for name in generations if choose_profile(name, None) is not load_profiles()["default"]}
    assert {"ada", "sm120", "cdna2", "xe", "ascend", "neuron", "ampere", "hopper", "blackwell"} <= with_own
