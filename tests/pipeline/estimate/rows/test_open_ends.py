"""Intervals reach to the other choices of what nothing states."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame

DENSE = {
    **{
        "model": "Llama 2 7B",
        "accelerator": "H100-SXM-80GB",
        "num_gpus": "64",
        "gpus_per_node": "8",
        "seq_len": "4096",
    },
    **{"dp": "8", "tp": "1", "pp": "8", "micro_batch_size": "1", "grad_accum": "8", "precision": "bf16"},
    **{"network_gbit_per_s": "50", "execution": "compiled", "flash_attention": "true", "overlap_ep": None},
    **{"token_dispatcher": None, "overlap_pp": None, "software_year": None, "framework": None, "ep": None},
    "grad_precision": "fp32",
}
EXPERTS = {**DENSE, "model": "DeepSeek-V3", "num_gpus": "256", "dp": "64", "pp": "4", "ep": "64", "grad_accum": "64"}


def estimated(row: dict[str, str | None], **facts: str | None) -> dict[str, Any]:
    return estimate_frame(pl.DataFrame([{**row, **facts}])).row(0, named=True)


def below(row: dict[str, Any]) -> float:
    """How far below its estimate an interval reaches."""
    return float(row["est_step_time_lo_s"] / row["est_step_time_s"])


def test_experts_whose_dispatch_is_open_may_take_as_little_as_the_fastest_dispatch() -> None:
    fast = {"token_dispatcher": "hybridep", "overlap_ep": "true", "framework": "megatron"}
    unknown, known = estimated(EXPERTS, framework="megatron"), estimated(EXPERTS, **fast)
    assert known["est_step_time_s"] < 0.8 * unknown["est_step_time_s"]
    assert unknown["est_step_time_lo_s"] == pytest.approx(known["est_step_time_lo_s"])
    assert unknown["est_mfu_hi"] == pytest.approx(known["est_mfu_hi"])
    assert unknown["est_step_time_hi_s"] / unknown["est_step_time_s"] == pytest.approx(
        known["est_step_time_hi_s"] / known["est_step_time_s"]
    )
    assert "one to each node" in unknown["est_assumptions"]
    assert "other micro-batches" in unknown["est_assumptions"]
    assert "one to each node" not in (known["est_assumptions"] or "")


def test_what_is_stated_is_not_open() -> None:
    slow = {"token_dispatcher": "alltoall", "overlap_ep": "false", "framework": "megatron"}
    assert below(estimated(EXPERTS, **slow)) == pytest.approx(below(estimated(EXPERTS, software_year="2024", **slow)))
    assert below(estimated(EXPERTS, framework="megatron")) < 0.8 * below(estimated(EXPERTS, **slow))


def test_nothing_is_open_that_was_not_written_yet_or_that_a_layout_has_not() -> None:
    known = below(estimated(EXPERTS, token_dispatcher="alltoall", overlap_ep="false", framework="megatron"))
    assert below(estimated(EXPERTS, framework="megatron", software_year="2024.5")) == pytest.approx(known)
    dense = estimated(DENSE, framework="megatron")
    assert below(dense) == pytest.approx(known)
    assert "experts" not in dense["est_assumptions"]


def test_sends_of_an_unknown_framework_may_run_beside_compute() -> None:
    unknown, megatron, stated = (
        estimated(DENSE),
        estimated(DENSE, framework="megatron"),
        estimated(DENSE, overlap_pp="false"),
    )
    assert below(unknown) < 0.97 * below(megatron)
    assert below(stated) == pytest.approx(below(megatron))
    assert "beside compute" in unknown["est_assumptions"]
    alone = estimated(DENSE, dp="64", pp="1", grad_accum="1")
    assert below(alone) == pytest.approx(below(megatron))
    assert "beside compute" not in (alone["est_assumptions"] or "")


def test_oneflow_sends_beside_compute_without_chunks() -> None:
    many = {**DENSE, "grad_accum": "64"}
    assert estimated(many, framework="oneflow")["est_time_pp_s"] < 0.5 * estimated(many)["est_time_pp_s"]


def test_of_a_framework_that_nothing_is_known_of_the_loss_may_be_one_kernel() -> None:
    small = {**DENSE, "model": "Qwen2.5 0.5B", "num_gpus": "8", "pp": "1", "seq_len": "1024", "micro_batch_size": "16"}
    small |= {"execution": "graphs", "framework": "a script of mine"}
    unknown, fused = estimated(small), estimated(small, loss_kernel="fused")
    assert fused["est_step_time_s"] < 0.9 * unknown["est_step_time_s"]
    assert unknown["est_step_time_lo_s"] == pytest.approx(fused["est_step_time_lo_s"])
    assert below(estimated(small, loss_kernel="sharded")) == pytest.approx(below(fused))


TENSOR = {**DENSE, "dp": "8", "tp": "8", "pp": "1", "framework": "a script of mine", "grad_precision": None}


def test_memory_may_be_that_of_states_in_16_bit_or_of_whole_logits() -> None:
    sixteen = dict.fromkeys(("grad_precision", "moment_precision", "master_precision"), "bf16")
    unknown, least = estimated(TENSOR), estimated(TENSOR, **sixteen)
    most = estimated(TENSOR, loss_parallel="false", grad_precision="fp32")
    assert least["est_mem_bytes"] < unknown["est_mem_bytes"] < most["est_mem_bytes"]
    assert unknown["est_mem_lo_bytes"] == pytest.approx(least["est_mem_lo_bytes"])
    assert unknown["est_mem_hi_bytes"] == pytest.approx(most["est_mem_hi_bytes"])
    assert "all states in 16" in unknown["est_assumptions"]
    assert "or all of it" not in (most["est_assumptions"] or "")
    known = estimated(TENSOR, framework="megatron")
    assert known["est_mem_lo_bytes"] / known["est_mem_bytes"] > unknown["est_mem_lo_bytes"] / unknown["est_mem_bytes"]


def test_operators_may_run_one_by_one_where_nothing_is_known_of_their_execution() -> None:
    small = {**TENSOR, "tp": "1", "dp": "64", "loss_kernel": "sharded", "micro_batch_size": "8", "execution": None}
    eager = dict.fromkeys(("norm_kernel", "rotary_kernel", "activation_kernel"), "eager")
    fused = dict.fromkeys(eager, "fused")
    unknown, one_by_one = estimated(small), estimated(small, execution="eager", **eager)
    assert unknown["est_step_time_hi_s"] == pytest.approx(one_by_one["est_step_time_hi_s"])
    assert unknown["est_mem_hi_bytes"] == pytest.approx(one_by_one["est_mem_hi_bytes"])
    stated = estimated(small, **fused)
    assert stated["est_step_time_hi_s"] < unknown["est_step_time_hi_s"]
    assert stated["est_step_time_s"] == unknown["est_step_time_s"]
