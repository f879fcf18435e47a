"""Facts that a row states decide what a framework's profile would have assumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.physics.profile import load_profiles
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.stated_facts import FACTS, with_choices, with_usual, with_usual_facts
from tests.pipeline.estimate.rows.test_estimate_rows import row

PART = "est_time_recompute_s"

ROW = {
    **{"model": "Llama 2 7B", "accelerator": "H100", "precision": "bf16", "recompute": "none"},
    **{"seq_len": "4096", "num_gpus": "64", "dp": "16", "tp": "2", "pp": "2", "micro_batch_size": "1"},
    **{"grad_accum": "8", "vpp": "4", "zero_stage_or_fsdp": "zero1", "sequence_parallel": "true"},
}


def estimated(**facts: str | None) -> dict[str, Any]:
    return estimate_frame(pl.DataFrame([{**ROW, **facts}])).row(0, named=True)


def test_tensor_exchanges_hide_where_a_framework_has_code_for_it() -> None:
    unknown, megatron = (estimated(framework=framework, overlap_tp=None) for framework in (None, "megatron"))
    alone, beside = (estimated(overlap_tp=stated) for stated in ("false", "true"))
    part = "est_time_tp_s"
    assert unknown[part] == alone[part] > 1.1 * beside[part]
    assert megatron[part] == beside[part]
    assert "overlap tp True" in megatron["est_assumptions"]


def test_no_run_has_what_was_written_after_it() -> None:
    facts = {"framework": "megatron", "accelerator": "A100", "sequence_parallel": None, "flash_attention": None}
    old, early, late = (estimated(**facts, software_year=year) for year in ("2021.5", "2022.5", "2024"))
    assert old["est_mem_activations_bytes"] > early["est_mem_activations_bytes"] > late["est_mem_activations_bytes"]
    assert old["est_time_attention_s"] == early["est_time_attention_s"] > late["est_time_attention_s"]
    assert old["est_time_tp_s"] > early["est_time_tp_s"]
    assert "overlap tp" not in old["est_assumptions"]
    assert "overlap tp True" in early["est_assumptions"]
    stated = estimated(**{**facts, "sequence_parallel": "true"}, software_year="2021.5", overlap_tp="true")
    assert stated["est_mem_activations_bytes"] == early["est_mem_activations_bytes"]


def test_maxtext_asks_for_cudnn_s_attention_on_cards_that_it_is_written_for() -> None:
    unknown, maxtext = (
        estimated(framework=name, execution="compiled", overlap_tp="true") for name in (None, "maxtext")
    )
    assert maxtext["est_time_attention_s"] < unknown["est_time_attention_s"]
    assert "attention kernel cudnn" in maxtext["est_assumptions"]


def test_nanotron_hides_tensor_exchanges_as_its_source_does() -> None:
    alone, usual = (estimated(framework="nanotron", overlap_tp=stated) for stated in ("false", None))
    assert alone["est_time_tp_s"] > 1.1 * usual["est_time_tp_s"]


def test_scales_by_row_gain_less_and_are_read_from_the_precision() -> None:
    wide, tensor, rows = (
        estimated(precision=f"bf16{also}", accelerator="H100 SXM")
        for also in ("", "+float8 tensorwise", "+float8 rowwise")
    )
    assert tensor["est_time_linear_s"] < rows["est_time_linear_s"] < wide["est_time_linear_s"]
    stated = estimated(precision="fp8", fp8_scaling="rowwise", accelerator="H100 SXM")
    assert stated["est_time_linear_s"] == rows["est_time_linear_s"]
    assert estimated(precision="fp8", accelerator="H100 SXM")["est_time_linear_s"] == tensor["est_time_linear_s"]


@pytest.mark.parametrize("which", ["dp", "pp"])
def test_an_exchange_that_does_not_overlap_is_exposed(which: str) -> None:
    usual, alone, beside = (estimated(**{f"overlap_{which}": stated}) for stated in (None, "false", "true"))
    part = f"est_time_{which}_s"
    assert alone[part] > 1.1 * usual[part]
    assert beside[part] == usual[part]


def test_gradients_in_16_bit_are_half_the_bytes() -> None:
    usual, long, short = (
        estimated(framework="megatron", grad_precision=stated) for stated in (None, "fp32", "bfloat16")
    )
    assert long == {**usual, **{name: long[name] for name in long if name not in usual}, "grad_precision": "fp32"}
    assert short["est_mem_gradients_bytes"] == pytest.approx(usual["est_mem_gradients_bytes"] / 2)
    assert short["est_time_dp_s"] < usual["est_time_dp_s"]
    assert estimated(grad_precision="soft")["est_status"] == "not understood: grad_precision = soft"


def test_small_buckets_pay_for_each_call() -> None:
    usual, small = (estimated(bucket_mb=stated, overlap_dp="false") for stated in ("1000", "1"))
    assert small["est_time_dp_s"] > 1.2 * usual["est_time_dp_s"]


@pytest.mark.parametrize(
    ("facts", "bytes_per_parameter"),
    [
        ({}, 12.0),
        ({"master_precision": "fp32"}, 12.0),
        ({"moment_precision": "bf16"}, 8.0),
        ({"master_precision": "bf16"}, 4.0),
        ({"master_precision": "bf16", "moment_precision": "fp32"}, 8.0),
    ],
)
def test_weights_that_are_updated_in_16_bit_have_no_copy(facts: dict[str, str], bytes_per_parameter: float) -> None:
    usual, stated = estimated()["est_mem_optimizer_bytes"], estimated(**facts)["est_mem_optimizer_bytes"]
    assert stated / usual == pytest.approx(bytes_per_parameter / 12.0)


MOE = {
    **ROW,
    **{"model": "DeepSeek-V3", "accelerator": "H800", "num_gpus": "256", "dp": "64", "tp": "1", "pp": "4", "vpp": "1"},
    "ep": "64",
}


@pytest.mark.parametrize(
    ("fact", "value", "part"),
    [
        ("recompute_modules", "layernorm, mla_up_proj moe_act", "est_mem_activations_bytes"),
        ("activation_precision", "fp8", "est_mem_activations_bytes"),
        ("activation_precision", "nvfp4", "est_mem_activations_bytes"),
        ("moment_precision", "bf16", "est_mem_optimizer_bytes"),
        ("dispatch_precision", "fp8", "est_time_ep_s"),
        ("nodes_per_token", "4", "est_time_ep_s"),
        ("token_dispatcher", "flex", "est_time_ep_s"),
    ],
)
def test_what_a_mixture_of_experts_does_with_less(fact: str, value: str, part: str) -> None:
    usual, stated = (estimate_frame(pl.DataFrame([{**MOE, fact: one}])).row(0, named=True) for one in (None, value))
    assert stated[part] < 0.9 * usual[part]
    assert stated["est_status"] == "ok"
    if fact == "recompute_modules":
        assert stated["est_time_recompute_s"] > usual["est_time_recompute_s"] == 0


def test_a_dispatcher_that_sends_a_token_once_to_each_rank_sends_less_inside_a_node_too() -> None:
    inside = {**MOE, "num_gpus": "32", "dp": "8", "ep": "8"}
    usual, once = (
        estimate_frame(pl.DataFrame([{**inside, "token_dispatcher": one}])).row(0, named=True)["est_time_ep_s"]
        for one in ("alltoall", "deepep")
    )
    distinct = 8 * (1 - (7 / 8) ** 8)  # ranks that eight of 256 experts on eight ranks are on
    assert once / usual == pytest.approx(distinct / 8, rel=0.02)


@pytest.mark.parametrize(
    ("module", "again"),
    [("core_attn", "attention"), ("moe", "ep"), ("shared_experts", "linear"), ("moe_act", "linear")],
)
def test_each_module_of_megatron_s_takes_time_again_and_leaves_memory(module: str, again: str) -> None:
    usual, stated = (
        estimate_frame(pl.DataFrame([{**MOE, "recompute_modules": one}])).row(0, named=True) for one in (None, module)
    )
    assert stated["est_status"] == "ok"
    assert stated["est_mem_activations_bytes"] < usual["est_mem_activations_bytes"]
    assert 0 == usual["est_time_recompute_s"] < stated["est_time_recompute_s"]
    assert stated["est_time_recompute_s"] < usual["est_time_linear_s"] + usual[f"est_time_{again}_s"]


def test_recomputing_attention_and_feed_forward_leaves_as_little_as_their_inputs() -> None:
    row = {**MOE, "model": "Llama 2 7B", "ep": None}
    usual, block, both, full = (
        estimate_frame(pl.DataFrame([{**row, **facts}])).row(0, named=True)
        for facts in ({}, {"recompute_modules": "mlp"}, {"recompute_modules": "core_attn, mlp"}, {"recompute": "full"})
    )
    memory, time = "est_mem_activations_bytes", "est_time_recompute_s"
    assert full[memory] < both[memory] < block[memory] < usual[memory]
    assert full[time] > both[time] > block[time] > usual[time] == 0


def test_experts_exchange_beside_other_micro_batches_where_that_is_stated() -> None:
    many = {**MOE, "grad_accum": "64"}
    usual, alone, beside = (
        estimate_frame(pl.DataFrame([{**many, "overlap_ep": one}])).row(0, named=True)
        for one in (None, "false", "true")
    )
    assert usual["est_time_ep_s"] == alone["est_time_ep_s"] > 1.5 * beside["est_time_ep_s"] > 0
    assert usual["est_mem_activations_bytes"] < beside["est_mem_activations_bytes"]


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("recompute_modules", "layernorm,attic"),
        ("dispatch_precision", "fp32"),
        ("nodes_per_token", "x"),
        ("token_dispatcher", "x"),
        ("fp8_scaling", "columnwise"),
    ],
)
def test_facts_in_unknown_words_are_refused(fact: str, value: str) -> None:
    assert estimated(**{fact: value})["est_status"] == f"not understood: {fact} = {value}"


def test_what_a_framework_usually_does_is_assumed_and_named() -> None:
    plain, nemo, stated = (
        estimated(framework=framework, grad_precision=precision)
        for framework, precision in ((None, None), ("mlperf", None), ("mlperf", "fp32"))
    )
    assert nemo["est_mem_gradients_bytes"] == plain["est_mem_gradients_bytes"] / 2
    assert "grad precision bf16" in nemo["est_assumptions"]
    assert stated["est_mem_gradients_bytes"] == plain["est_mem_gradients_bytes"]
    assert "grad precision" not in stated["est_assumptions"]


def test_kernels_written_for_the_generation_and_products_that_add_up_gradients_are_faster() -> None:
    usual, cudnn, fused = (
        estimated(**facts) for facts in ({}, {"attention_kernel": "cuDNN"}, {"fused_accumulation": "true"})
    )
    assert cudnn["est_time_attention_s"] < 0.5 * usual["est_time_attention_s"]
    assert estimated(attention_kernel="flash-attention-2") == {**usual, "attention_kernel": "flash-attention-2"}
    assert fused["est_time_optimizer_s"] < 0.7 * usual["est_time_optimizer_s"]
    megatron = estimated(framework="megatron")
    assert megatron["est_time_attention_s"] == cudnn["est_time_attention_s"]
    assert "attention kernel cudnn" in megatron["est_assumptions"]


@pytest.mark.parametrize(
    ("card", "is_named"), [("H100", True), ("B200", True), ("A100-SXM-80GB", False), ("MI300X", False)]
)
def test_cudnn_is_assumed_where_it_is_preferred(card: str, is_named: bool) -> None:
    assert (
        "attention kernel cudnn" in estimated(framework="megatron", accelerator=card)["est_assumptions"]
    ) == is_named


def test_a_profile_that_was_fitted_has_its_frameworks_choices_in_its_constants() -> None:
    profile = load_profiles()["ampere-megatron"]
    assert with_usual(dict.fromkeys(FACTS), "megatron", profile) == (dict.fromkeys(FACTS), [])
    assert with_usual_facts(profile, "megatron") == profile
    assert with_usual_facts(load_profiles()["hopper"], "mlperf").grad_bytes == 2.0


def test_selective_recomputation_is_that_of_the_framework() -> None:
    def again(framework: str | None, mode: str) -> float:
        facts = {"framework": framework, "recompute": mode, "pp": "1", "vpp": "1", "dp": "32"}
        return float(estimate_frame(pl.DataFrame([{**ROW, **facts}]), lambda *_: load_profiles()["hopper"])[PART][0])

    # Fused attention keeps no core; torchtitan drops every second product beside (`_get_custom_policy`).
    assert again(None, "selective") == 0.0
    assert 0.2 < again("torchtitan", "selective") / again("torchtitan", "full") < 0.7


@pytest.mark.parametrize(
    ("framework", "version", "kernel", "is_cudnn"),
    [
        (None, "2.11.0+cu130", "sdpa", True),
        (None, "2.9.1", "sdpa", False),
        (None, None, "sdpa", False),
        ("nanogpt", "2.12", None, True),
        ("torchtitan", "2.11", None, True),
        ("composer", "2.11", None, False),  # flash-attn's own
        ("hf-trainer", "2.11", "flash_attention_2", False),
    ],
)
def test_recent_pytorch_takes_cudnn_for_its_own_attention(
    framework: str | None, version: str | None, kernel: str | None, is_cudnn: bool
) -> None:
    plain = load_profiles()["hopper"]
    found = with_usual_facts(plain, framework, {"attention_kernel": kernel, "torch_version": version})
    assert (found.attention_efficiency == plain.tuned_attention_efficiency) == is_cudnn
    row = {**dict.fromkeys(FACTS), "attention_kernel": kernel, "torch_version": version}
    is_noted = any("cuDNN" in note for note in with_usual(row, framework, plain)[1])
    assert is_noted == (is_cudnn and kernel is None)


def test_a_profile_fitted_to_other_kernels_knows_those_of_its_generation() -> None:
    profiles = load_profiles()
    fitted, plain = profiles["hopper-torchtitan"], profiles["hopper"]
    assert fitted.attention_efficiency < 0.3
    found = with_usual_facts(fitted, "torchtitan", {"torch_version": "2.11.0"})
    assert found.attention_efficiency == plain.tuned_attention_efficiency
    assert profiles["ampere-composer"].tuned_attention_efficiency == profiles["ampere"].tuned_attention_efficiency


@pytest.mark.parametrize(
    ("kernel", "year", "flash", "is_second"),
    [
        (None, None, None, False),
        (None, 2023.2, None, False),
        (None, 2024.0, None, True),  # what trainers have by then
        ("flash_attn 2.3", None, None, True),
        ("flash_attention_2", 2023.0, None, True),
        ("flash-attention-1", 2024.0, None, False),
        (None, 2024.0, "false", False),
    ],
)
def test_flash_attention_2_is_the_kernel_of_ampere(
    kernel: str | None, year: float | None, flash: str | None, is_second: bool
) -> None:
    plain, stated = load_profiles()["ampere"], {"attention_kernel": kernel, "software_year": year}
    found = with_usual_facts(plain, None, {**stated, "flash_attention": flash})
    assert (found.attention_efficiency == plain.tuned_attention_efficiency) == is_second
    notes = with_usual({**dict.fromkeys(FACTS), **stated}, None, plain)[1]
    assert ("FlashAttention-2, that of its year" in notes) == (kernel is None and (year or 0.0) > plain.tuned_since)


@pytest.mark.parametrize("card", ["gaudi", "gaudi3"])
def test_a_trainer_has_the_choices_of_its_fork_on_the_card(card: str) -> None:
    plain, other = load_profiles()[card], load_profiles()["hopper"]
    fork, upstream = (with_usual_facts(one, "megatron-deepspeed") for one in (plain, other))
    assert (fork.is_flash, fork.is_sequence_parallel, fork.has_dropout) == (True, True, False)
    assert (upstream.is_flash, upstream.is_sequence_parallel, upstream.has_dropout) == (False, False, True)
    assert fork.reduces_whole
    assert upstream.reduces_whole
    assert not with_usual_facts(plain, "megatron-deepspeed", {"flash_attention": "false"}).is_flash


def test_what_a_source_decides_is_assumed_of_frameworks_without_a_profile() -> None:
    plain, fitted = load_profiles()["hopper"], load_profiles()["hopper-nanotron"]
    assert plain.hides_gather
    assert not with_choices(plain, "nanotron").hides_gather
    assert with_choices(fitted, "nanotron") == fitted
    assert with_choices(plain, "internevo").reduces_whole
    assert [with_choices(plain, name).cut_sends for name in ("megatron", "megatron-deepspeed", "")] == [2.0, 1.0, 0.0]
    assert with_choices(fitted, "torchtitan") == replace(fitted, frees_gradients=True)  # what no fit was made on


def test_kernels_that_a_framework_does_not_fuse_cost_traffic() -> None:
    def elementwise(framework: str) -> float:
        table = pl.DataFrame([row(accelerator="A100-SXM-80GB", framework=framework)])
        estimated = estimate_frame(table, lambda _generation, _framework: load_profiles()["ampere"])
        return float(estimated["est_time_elementwise_s"][0])

    hidden, inner, query = 20 * 4096, 6 * 11008 / 2, 6 * 4096 / 2  # sequence parallelism splits the first, too
    more = 4 * 11008 / 2 + (16 + 8) * 4096 / 2
    assert elementwise("nanotron") / elementwise("other") == pytest.approx(1 + more / (hidden / 2 + inner + query))
    assert elementwise("megatron-deepspeed") > elementwise("other")


def test_eager_attention_moves_more_than_one_with_a_fused_softmax() -> None:
    plain = load_profiles()["hopper"]
    eager, unfused, flash = (
        with_usual_facts(plain, None, {"attention_kernel": kernel, "flash_attention": is_flash})
        for kernel, is_flash in (("eager", None), ("unfused", "false"), ("flash", "true"))
    )
    assert (eager.is_flash, unfused.is_flash, flash.is_flash) == (False, False, True)
    assert (eager.softmax, unfused.softmax) == ("eager", "fused")


def test_gradients_of_one_replica_lie_beside_no_activations_unless_they_accumulate() -> None:
    alone = {**row(), "num_gpus": "1", "dp": "1", "tp": "1", "pp": "1", "cp": "1", "zero_stage_or_fsdp": "zero0"}
    once, twice, replicas, kept = (
        estimate_frame(pl.DataFrame([{**alone, "framework": "hf-trainer", **changes}])).row(0, named=True)
        for changes in (
            {"grad_accum": "1"},
            {"grad_accum": "2"},
            {"grad_accum": "1", "dp": "2", "num_gpus": "2"},
            {"grad_accum": "1", "framework": "megatron"},
        )
    )
    gradients = "est_mem_gradients_bytes"
    assert once[gradients] < twice[gradients] == kept[gradients] <= replicas[gradients]


def test_a_loss_of_whole_logits_takes_every_tensor_rank_as_long_and_as_much() -> None:
    facts = {"tp": "8", "pp": "1", "vpp": "1", "num_gpus": "64", "dp": "8"}
    parts, whole = (estimated(**facts, loss_parallel=stated) for stated in ("true", "false"))
    part = "est_mem_logits_bytes"
    logits = 8.0 * 4096 * 32000
    assert whole[part] - parts[part] == pytest.approx(logits * 7 / 8)
    assert whole["est_time_head_s"] > 1.5 * parts["est_time_head_s"]
    assert whole["est_time_tp_s"] > parts["est_time_tp_s"]
    alone = [estimated(tp="1", num_gpus="32", loss_parallel=stated) for stated in ("true", "false")]
    assert alone[0]["est_step_time_s"] == alone[1]["est_step_time_s"]


@pytest.mark.parametrize(("framework", "is_whole"), [("picotron", True), ("trl", True), ("megatron", False)])
def test_whether_logits_are_gathered_is_known_of_frameworks(framework: str, is_whole: bool) -> None:
    facts = {"framework": framework, "overlap_tp": "false"}
    usual, stated = estimated(**facts), estimated(**facts, loss_parallel=str(not is_whole).lower())
    assert usual["est_mem_logits_bytes"] == stated["est_mem_logits_bytes"]
    assert usual["est_step_time_s"] == stated["est_step_time_s"]
