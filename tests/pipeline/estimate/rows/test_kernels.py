"""How kernels run, and which are fused, decides launches, traffic and what is kept."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.transfer_tables import of_generation
from sweepscope.pipeline.estimate.physics.compute import KERNELS_OF_CASTS, KERNELS_PER_LAYER
from sweepscope.pipeline.estimate.physics.profile import choose_profile, load_profiles
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.kernels import EXECUTIONS, FORMS, USUAL_KERNELS, with_kernels
from sweepscope.pipeline.estimate.rows.stated_facts import FACTS, with_usual_facts
from sweepscope.schemas.vocab import FRAMEWORK

SMALL = {
    **{"model": "Llama 2 7B", "accelerator": "H100", "precision": "bf16", "recompute": "none", "seq_len": "128"},
    **{"num_gpus": "8", "dp": "8", "tp": "1", "pp": "1", "micro_batch_size": "1", "grad_accum": "64"},
    **{"zero_stage_or_fsdp": "zero1", "network_gbit_per_s": "400"},
}
LARGE = {**SMALL, "seq_len": "4096", "micro_batch_size": "2"}


def estimated(table: dict[str, str], **facts: str | None) -> dict[str, Any]:
    return estimate_frame(pl.DataFrame([{**table, **facts}])).row(0, named=True)


def test_short_kernels_wait_for_launches_unless_compiled_or_captured() -> None:
    seconds = {word: estimated(SMALL, execution=word)["est_step_time_s"] for word in EXECUTIONS}
    launches = 64 * 32 * 3 * KERNELS_PER_LAYER[True] * 4.1e-5
    assert seconds["eager"] > launches > 2.5 * seconds["compiled"]
    assert seconds["graphs"] < 1.01 * seconds["compiled"]  # its loss is not fused


def test_layers_without_a_gate_launch_fewer_kernels() -> None:
    shape = {
        "num_layers": "32",
        "hidden_size": "1024",
        "num_heads": "16",
        "ffn_hidden_size": "4096",
        "vocab_size": "50304",
    }
    small = {**SMALL, **shape, "model": "mine", "tie_word_embeddings": "true"}
    plain, gated = (estimated({**small, "gated_mlp": word}, execution="eager") for word in ("false", "true"))
    saved = 64 * 32 * 3 * (KERNELS_PER_LAYER[True] - KERNELS_PER_LAYER[False]) * 4.1e-5
    assert gated["est_step_time_s"] - plain["est_step_time_s"] == pytest.approx(saved, rel=0.1)


@pytest.mark.parametrize("card", ["Gaudi2", "Gaudi3"])
def test_a_card_with_a_compiler_of_its_own_runs_graphs_whatever_the_trainer(card: str) -> None:
    usual, compiled, eager = (
        estimated(SMALL, accelerator=card, framework="deepspeed", execution=word)
        for word in (None, "compiled", "eager")
    )
    assert usual["est_step_time_s"] == compiled["est_step_time_s"] < 0.5 * eager["est_step_time_s"]
    assert "compiled execution" in usual["est_assumptions"]
    assert "eager execution" in estimated(SMALL, framework="deepspeed")["est_assumptions"]


def test_products_in_8_bits_wait_for_the_launches_of_their_casts() -> None:
    per_kernel = 64 * 32 * 3 * 4.1e-5
    wide, short = (estimated(SMALL, execution="eager", precision=word)["est_step_time_s"] for word in ("bf16", "fp8"))
    assert short - wide == pytest.approx(2 * KERNELS_OF_CASTS * per_kernel, rel=0.1)
    wide, short = (estimated(LARGE, execution="eager", precision=word)["est_step_time_s"] for word in ("bf16", "fp8"))
    assert short < wide


def test_long_kernels_do_not_wait() -> None:
    eager, graphs = (estimated(LARGE, execution=word, framework="megatron") for word in ("eager", "graphs"))
    assert eager["est_step_time_s"] == pytest.approx(graphs["est_step_time_s"], rel=1e-3)


def test_an_unknown_execution_lies_between_and_its_interval_reaches_both() -> None:
    unknown, eager, compiled = (estimated(SMALL, execution=word) for word in (None, "eager", "compiled"))
    assert compiled["est_step_time_s"] < unknown["est_step_time_s"] < eager["est_step_time_s"]
    assert unknown["est_step_time_lo_s"] <= compiled["est_step_time_lo_s"] * 1.01
    assert unknown["est_step_time_hi_s"] >= eager["est_step_time_hi_s"] * 0.99
    assert unknown["est_mfu_lo"] < unknown["est_mfu"] < unknown["est_mfu_hi"]
    assert "execution between eager and compiled" in unknown["est_assumptions"]
    assert "execution" not in eager["est_assumptions"]
    fused = dict.fromkeys(("norm_kernel", "rotary_kernel", "activation_kernel"), "fused")
    large, stated = estimated(LARGE, **fused), estimated(LARGE, execution="graphs", **fused)
    assert large["est_step_time_hi_s"] == pytest.approx(stated["est_step_time_hi_s"], rel=1e-3)


def test_before_compilation_came_all_was_eager() -> None:
    old, new = (estimated(SMALL, torch_version=version) for version in ("1.13.1+cu117", "2.6.0"))
    assert (
        old["est_step_time_s"]
        == estimated(
            SMALL, framework="megatron", execution="eager", attention_kernel="none", fused_accumulation="false"
        )["est_step_time_s"]
    )
    assert new["est_step_time_s"] < old["est_step_time_s"]
    assert "eager execution" in old["est_assumptions"]


def test_each_kernel_that_is_not_fused_costs_time_and_what_it_keeps() -> None:
    fused = estimated(LARGE, execution="compiled")
    for column in FORMS:
        eager = estimated(LARGE, execution="compiled", **{column: "eager"})
        assert eager["est_step_time_s"] > fused["est_step_time_s"], column
        assert eager["est_mem_bytes"] >= fused["est_mem_bytes"], column
    norm = estimated(LARGE, execution="compiled", norm_kernel="eager")
    tokens = 2 * 4096
    assert norm["est_mem_activations_bytes"] - fused["est_mem_activations_bytes"] == tokens * 32 * 4096 * 8


def test_unknown_words_are_refused() -> None:
    assert estimated(SMALL, execution="fast")["est_status"] == "not understood: execution = fast"
    assert estimated(SMALL, norm_kernel="sharded")["est_status"] == "not understood: norm_kernel = sharded"
    assert estimated(SMALL, execution=" Compiled ")["est_status"] == "ok"


def test_what_frameworks_do_is_in_known_words() -> None:
    for framework, usual in USUAL_KERNELS.items():
        assert framework in FRAMEWORK
        assert usual["execution"] in EXECUTIONS
        assert all(word in FORMS[column] for column, word in usual.items() if column != "execution")


def test_of_a_fitted_profile_only_what_differs_from_its_rows_counts() -> None:
    open_ = dict.fromkeys(FACTS)
    nanotron, titan = (load_profiles()[f"hopper-{name}"] for name in ("nanotron", "torchtitan"))
    assert with_kernels(nanotron, open_, "nanotron") == ({}, [])
    assert with_kernels(nanotron, {**open_, "execution": "eager"}, "nanotron") == ({}, [])
    changed, _ = with_kernels(nanotron, {**open_, "execution": "compiled"}, "nanotron")
    assert changed["kernel_launch_s"] == nanotron.compiled_launch_s
    assert with_kernels(titan, {**open_, "execution": "compiled"}, "torchtitan") == ({}, [])
    eager, _ = with_kernels(titan, {**open_, "execution": "eager"}, "torchtitan")
    assert eager["unfused_norm_bytes"] > 0
    assert eager["kernel_launch_s"] == titan.eager_launch_s


def test_a_stated_execution_decides_where_there_is_no_row() -> None:
    hopper = choose_profile("hopper", None)
    assert with_usual_facts(hopper, None).is_launch_open
    assert with_usual_facts(hopper, None, {"execution": "graphs"}).kernel_launch_s == hopper.graph_launch_s
    assert with_usual_facts(hopper, "mlperf").kernel_launch_s == hopper.graph_launch_s


def test_counted_kernels_give_what_compiling_gained() -> None:
    """torchtitan's 8B with and without torch.compile (table 1 and 3), by constants that saw no run of torchtitan."""
    table = published_table("torchtitan").filter(pl.col("table_or_figure").str.contains("FSDP( .+ torch.compile)?$"))
    pairs = estimate_frame(table, of_generation).with_columns(pl.col("step_time_s").cast(pl.Float64))
    for (_gpus,), pair in pairs.group_by("num_gpus"):
        eager, compiled = (pair.filter(pl.col("execution") == word) for word in ("eager", "compiled"))
        measured = eager["step_time_s"].item() / compiled["step_time_s"].item()
        assert eager["est_step_time_s"].item() / compiled["est_step_time_s"].item() == pytest.approx(measured, abs=0.08)
