from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import draws
from tests.run_rows import Row, completed_frame, run_row


def completed(**changes: Any) -> Row:
    return completed_frame(run_row(**changes)).to_dicts()[0]


# Parameter counts as their papers or model cards give them.
LLAMA_3_1_8B: Row = {
    "num_layers": 32,
    "hidden_size": 4096,
    "num_heads": 32,
    "num_kv_heads": 8,
    "ffn_hidden_size": 14_336,
    "gated_mlp": True,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
    "model": "Llama 3.1 8B",
}
PALM_540B: Row = {
    "num_layers": 118,
    "hidden_size": 18_432,
    "num_heads": 48,
    "num_kv_heads": 1,
    "head_dim": 256,
    "ffn_hidden_size": 73_728,
    "gated_mlp": True,
    "vocab_size": 256_000,
    "tie_word_embeddings": True,
    "model": "PaLM",
}
GPT_3_175B: Row = {
    "num_layers": 96,
    "hidden_size": 12_288,
    "num_heads": 96,
    "num_kv_heads": 96,
    "ffn_hidden_size": 49_152,
    "gated_mlp": False,
    "vocab_size": 51_200,
    "tie_word_embeddings": True,
    "model": "GPT-3 175B",
}
MIXTRAL_8X7B: Row = {
    "num_layers": 32,
    "hidden_size": 4096,
    "num_heads": 32,
    "num_kv_heads": 8,
    "ffn_hidden_size": None,
    "gated_mlp": True,
    "vocab_size": 32_000,
    "tie_word_embeddings": False,
    "num_experts": 8,
    "experts_per_token": 2,
    "expert_ffn_hidden_size": 14_336,
    "shared_expert_ffn_hidden_size": 0,
    "num_dense_layers": 0,
    "model": "Mixtral",
}


@pytest.mark.parametrize(
    ("shape", "params", "active"),
    [
        (LLAMA_3_1_8B, 8_030_261_248, 8_030_261_248),  # model card: 8,030,261,248
        (PALM_540B, 540.35e9, 540.35e9),  # PaLM table 1
        (GPT_3_175B, 174.6e9, 174.6e9),  # Megatron's formula, 2104.04473 section 5.1
        (MIXTRAL_8X7B, 46.7e9, 12.9e9),  # 2401.04088 section 2
    ],
)
def test_counts_parameters_as_published(shape: Row, params: float, active: float) -> None:
    run = completed(**shape)
    assert run["params"] == pytest.approx(params, rel=4e-3)  # three printed digits
    assert run["active_params"] == pytest.approx(active, rel=4e-3)


def test_llama_8b_is_exact() -> None:
    assert completed(**LLAMA_3_1_8B)["params"] == 8_030_261_248


@pytest.mark.parametrize(
    "missing",
    [
        "num_layers",
        "hidden_size",
        "num_heads",
        "num_kv_heads",
        "ffn_hidden_size",
        "gated_mlp",
        "vocab_size",
        "tie_word_embeddings",
    ],
)
def test_an_incomplete_shape_falls_back_to_the_label(missing: str) -> None:
    assert completed(**{missing: None}, params=None)["params"] is None
    assert completed(**{missing: None}, params=1_300_000_000)["params"] == 1_300_000_000


@pytest.mark.parametrize("missing", ["expert_ffn_hidden_size", "shared_expert_ffn_hidden_size", "num_dense_layers"])
def test_experts_need_all_their_widths(missing: str) -> None:
    run = completed(**MIXTRAL_8X7B | {missing: None})
    assert run["params"] is None
    assert run["mfu_basis"] == "not computed: parameters unknown"


def test_latent_attention_uses_the_label_and_leaves_attention_out() -> None:
    # DeepSeek-V3: 180K H800 GPU-hours per 1e12 tokens and 37B active parameters are 343 TFLOP/s, 17 % of the FP8 peak.
    run = completed(
        model="DeepSeek-V3",
        num_layers=61,
        hidden_size=7168,
        num_heads=128,
        num_kv_heads=None,
        kv_lora_rank=512,
        num_experts=256,
        experts_per_token=8,
        params=671_000_000_000,
        active_params=37_000_000_000,
        accelerator="H800",
        precision="fp8",
        tokens_per_s_per_gpu=1e12 / 180e3 / 3600,
    )
    assert run["model_tflops_per_gpu"] == pytest.approx(342.6, abs=0.1)
    assert run["mfu"] == pytest.approx(0.173, abs=5e-4)
    assert run["mfu_basis"] == "6N, attention left out; peak 1979 TFLOP/s (FP8)"


LATENT_ATTENTION: Row = {
    "num_kv_heads": None,
    "head_dim": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "gated_mlp": True,
    "tie_word_embeddings": False,
    "params": None,
    "active_params": None,
    "seq_len": 4096,
}
"""What DeepSeek-V2-Lite and DeepSeek-V3 share; parameters are to be counted from the widths."""


def test_latent_attention_with_all_its_widths_is_counted_exactly() -> None:
    # DeepSeek-V3 (2412.19437): 671B parameters, 37B of them active (its multi-token prediction module left out).
    run = completed(
        **LATENT_ATTENTION,
        model="DeepSeek-V3",
        num_layers=61,
        hidden_size=7168,
        num_heads=128,
        q_lora_rank=1536,
        ffn_hidden_size=18432,
        vocab_size=129280,
        num_experts=256,
        experts_per_token=8,
        expert_ffn_hidden_size=2048,
        shared_expert_ffn_hidden_size=2048,
        num_dense_layers=3,
    )
    assert run["params"] == pytest.approx(671.0e9, rel=1e-3)
    assert run["active_params"] == pytest.approx(37.5e9, rel=0.01)
    assert run["mfu_basis"].startswith("6N + 6Ls(q + v); ")
    assert run["flops_per_token"] == pytest.approx(6 * run["active_params"] + 6 * 61 * 4096 * 128 * (128 + 64 + 128))


def test_latent_attention_that_does_not_compress_queries() -> None:
    # DeepSeek-V2-Lite (2405.04434, appendix B): 15.7B parameters, 2.4B active.
    run = completed(
        **LATENT_ATTENTION,
        model="DeepSeek-V2-Lite",
        num_layers=27,
        hidden_size=2048,
        num_heads=16,
        q_lora_rank=0,
        ffn_hidden_size=10944,
        vocab_size=102400,
        num_experts=64,
        experts_per_token=6,
        expert_ffn_hidden_size=1408,
        shared_expert_ffn_hidden_size=2816,
        num_dense_layers=1,
    )
    assert run["params"] == pytest.approx(15.7e9, rel=5e-3)
    assert run["active_params"] == pytest.approx(2.66e9, rel=0.02)


def test_palm_reaches_its_published_mfu() -> None:
    # PaLM (2204.02311) section 4.1: 238.3K tokens/s on 6,144 TPU v4 are 46.2 % MFU.
    run = completed(
        **PALM_540B,
        accelerator="TPU v4",
        num_gpus=6144,
        seq_len=2048,
        tokens_per_s_per_gpu=238_300 / 6144,
        dp=512,
        tp=12,
        num_nodes=None,
        gpus_per_node=None,
        gbs=2048,
        mbs=None,
        gas=None,
        gbs_tokens=None,
    )
    assert run["mfu"] == pytest.approx(0.462, abs=5e-4)


def test_megatron_175b_reaches_its_published_mfu() -> None:
    # Korthikanti et al. (2205.05198) table 5: 13.75 s per step of 64 sequences on 64 A100 are 51.4 % MFU.
    run = completed(
        **GPT_3_175B,
        accelerator="A100-SXM4-80GB",
        num_gpus=64,
        num_nodes=8,
        seq_len=2048,
        step_time_s=13.75,
        dp=1,
        tp=8,
        pp=8,
        mbs=1,
        gas=64,
        gbs=64,
        gbs_tokens=64 * 2048,
        tokens_per_s_per_gpu=None,
        precision="fp16",
    )
    assert run["mfu"] == pytest.approx(0.514, abs=5e-4)


@pytest.mark.parametrize(
    ("changes", "basis"),
    [
        ({"tokens_per_s_per_gpu": None}, "not computed: no throughput"),
        (
            {"tokens_per_s_per_gpu": None, "tokens_per_s": 9e4}
            | dict.fromkeys(("num_gpus", "num_nodes", "dp", "tp", "pp")),
            "not computed: number of GPUs unknown",
        ),
        ({"accelerator": None}, "not computed: accelerator unknown"),
        ({"accelerator": "Quadro"}, "not computed: Quadro is not in the accelerators table"),
        ({"accelerator": "CPU"}, "not computed: no bf16 peak for CPU"),
        ({"precision": "fp32"}, "not computed: no fp32 peak for H100-SXM-80GB"),
        ({"precision": "unclear"}, "not computed: precision not stated, 8-bit or lower possible"),
        ({"vocab_size": None, "model": "ours"}, "not computed: parameters unknown"),
    ],
)
def test_says_why_mfu_cannot_be_computed(changes: Row, basis: str) -> None:
    run = completed(**changes)
    assert run["mfu"] is None
    assert run["mfu_basis"] == basis


@pytest.mark.parametrize(
    ("changes", "basis"),
    [
        ({}, "6N + 12Lhs; peak 989 TFLOP/s (16-bit)"),
        ({"precision": None}, "6N + 12Lhs; peak 989 TFLOP/s (16-bit, precision not stated)"),
        ({"precision": "fp8"}, "6N + 12Lhs; peak 1979 TFLOP/s (FP8)"),
        ({"seq_len": None, "gbs": None, "gbs_tokens": None}, "6N, attention left out; peak 989 TFLOP/s (16-bit)"),
    ],
)
def test_says_how_mfu_was_computed(changes: Row, basis: str) -> None:
    assert completed(**changes)["mfu_basis"] == basis


def test_a_run_too_fast_for_sixteen_bits_has_no_mfu_until_its_precision_is_stated() -> None:
    slow, fast = completed(precision=None), completed()
    speed = fast["tokens_per_s_per_gpu"] * 0.75 / fast["mfu"]
    run = completed(precision=None, tokens_per_s_per_gpu=speed)
    assert slow["mfu"] == fast["mfu"]
    assert (run["mfu"], run["peak_tflops"]) == (None, None)
    assert run["mfu_basis"] == (
        "not computed: 742 TFLOP/s is more than 16-bit products reach on H100-SXM-80GB, and the precision is not stated"
    )
    assert completed(precision="fp8", tokens_per_s_per_gpu=speed)["mfu"] == pytest.approx(0.75 * 989 / 1979, rel=1e-3)
    assert completed(precision="bf16", tokens_per_s_per_gpu=speed)["mfu"] == pytest.approx(0.75)
    # A card without 8-bit products cannot have used them: its figures contradict each other, and stay to be seen.
    assert completed(precision=None, tokens_per_s_per_gpu=speed, accelerator="A100-SXM-80GB")["mfu"] > 1


def test_throughput_follows_from_step_time() -> None:
    run = completed(tokens_per_s_per_gpu=None, step_time_s=4.0)
    assert run["tokens_per_s"] == 262_144
    assert run["tokens_per_s_per_gpu"] == 32_768


def test_no_throughput_follows_from_the_time_of_an_epoch() -> None:
    run = completed(tokens_per_s_per_gpu=None, step_time_s=4.0, step_basis="whole_epoch")
    assert (run["tokens_per_s"], run["step_time_s"]) == (None, 4.0)


def test_a_logged_throughput_is_never_replaced() -> None:
    run = completed(tokens_per_s_per_gpu=40_000.0, tokens_per_s=1.0, step_time_s=2.0)
    assert (run["tokens_per_s_per_gpu"], run["tokens_per_s"], run["step_time_s"]) == (40_000.0, 1.0, 2.0)


def test_a_step_time_says_what_it_is() -> None:
    computed = {"step_time_s": None, "tokens_per_s": 1024.0, "tokens_per_s_per_gpu": None, "gbs_tokens": 2048}
    assert completed(**computed)["step_time_basis"] == "throughput"
    assert completed(step_time_s=2.0, step_time_basis="whole_run")["step_time_basis"] == "whole_run"
    assert completed(step_time_s=2.0)["step_time_basis"] is None


_START, _HALF_AN_HOUR = datetime(2026, 11, 20, 22, 0), datetime(2026, 11, 20, 22, 30)
_STEPS: Row = {"first_step": 1, "last_step": 90, "step_time_s": 10.0, "tokens_per_s_per_gpu": None}  # a quarter hour


@pytest.mark.parametrize(
    ("changes", "gpu_hours", "basis"),
    [
        ({"started_at": _START, "ended_at": _HALF_AN_HOUR}, 4.0, "timestamps"),
        ({"started_at": _START, "ended_at": _HALF_AN_HOUR, "status": "oom"}, 4.0, "timestamps"),
        ({"started_at": _START, "ended_at": _HALF_AN_HOUR, **_STEPS}, 4.0, "timestamps"),
        ({"started_at": _START, "ended_at": None}, None, None),
        ({"started_at": _START, "ended_at": datetime(2026, 11, 20, 21, 0)}, None, None),
        ({"started_at": _START, "ended_at": _START}, None, None),  # one line with a time spans nothing
        ({"started_at": _START, "ended_at": _START, **_STEPS}, 2.0, "steps"),
        (_STEPS, 2.0, "steps"),
        ({**_STEPS, "step_basis": "ordinal"}, None, None),
        ({"started_at": _START, "ended_at": datetime(2026, 11, 20, 22, 1), **_STEPS}, 2.0, "steps"),
        ({"gpu_hours": 7.0, **_STEPS}, 7.0, "given"),
        (_STEPS | dict.fromkeys(("num_gpus", "num_nodes", "gpus_per_node", "dp", "gbs", "gbs_tokens")), None, None),
    ],
)
def test_gpu_hours_say_what_they_rest_on(changes: Row, gpu_hours: float | None, basis: str | None) -> None:
    run = completed(**changes)
    assert (run["gpu_hours"], run["gpu_hours_basis"]) == (gpu_hours, basis)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"params": 1_300_000_000}, None),  # 3 % off: a rounded label
        ({"params": 2_000_000_000}, "the shape has 1.3B parameters, the label says 2.0B"),
        ({"num_gpus": 16, "num_nodes": 2}, "the layout needs 8 accelerators, the run had 16"),
        ({"tokens_per_s_per_gpu": 300_000.0}, "2899.0 TFLOP/s is above the accelerator's peak"),
        ({"hfu": 0.2}, "tokens/s imply an MFU of 39.1 %, the printed HFU is 20.0 %"),
        ({"tflops_per_gpu_logged": 100.0}, None),  # frameworks' own formulas are no evidence
        ({"status": "oom", "num_gpus": 16, "num_nodes": 2}, None),  # never ranked, so nothing to keep out
        ({"quarantine_reason": "by hand"}, "by hand"),
    ],
)
def test_keeps_impossible_runs_out_of_rankings(changes: Row, reason: str | None) -> None:
    assert completed(**changes)["quarantine_reason"] == reason


positive = st.floats(min_value=1.0, max_value=1e5)


@settings(max_examples=draws(30))
@given(positive, st.floats(min_value=0.1, max_value=10))
def test_mfu_is_proportional_to_throughput(speed: float, factor: float) -> None:
    base = completed(tokens_per_s_per_gpu=speed)["mfu"]
    assert completed(tokens_per_s_per_gpu=speed * factor)["mfu"] == pytest.approx(base * factor, rel=1e-9)


@settings(max_examples=draws(30))
@given(positive, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([0, 1, 2, 3]))
def test_mfu_does_not_depend_on_layout_or_sharding(speed: float, tp: int, pp: int, zero_stage: int) -> None:
    # Model FLOPs know nothing of how the work is cut: same tokens/s/GPU, same MFU.
    other = completed(
        tokens_per_s_per_gpu=speed,
        tp=tp,
        pp=pp,
        dp=4,
        num_gpus=4 * tp * pp,
        num_nodes=None,
        zero_stage=zero_stage,
        gas=None,
        mbs=None,
    )
    assert other["mfu"] == pytest.approx(completed(tokens_per_s_per_gpu=speed)["mfu"], rel=1e-12)


@settings(max_examples=draws(30))
@given(positive)
def test_completing_twice_changes_nothing(speed: float) -> None:
    once = completed_frame(run_row(tokens_per_s_per_gpu=speed, params=2_000_000_000))
    assert completed_frame(*once.to_dicts()).equals(once)


@pytest.mark.slow
def test_a_run_has_the_same_figures_alone_and_among_others() -> None:
    """polars divides one row and many rows by a number with different kernels."""
    rows = [
        run_row(
            tokens_per_s_per_gpu=1e4 + 791.937 * i,
            step_time_s=None,
            started_at=datetime(2025, 1, 1),
            ended_at=datetime(2025, 1, 1, 1, i),
        )
        for i in range(40)
    ]
    together = completed_frame(*rows)
    for i, row in enumerate(rows):
        alone = completed_frame(row)
        assert alone["mfu"][0] is not None
        assert alone.select("model_tflops_per_gpu", "mfu", "gpu_hours").row(0) == together.select(
            "model_tflops_per_gpu", "mfu", "gpu_hours"
        ).row(i)


def test_empty_frame_has_all_columns() -> None:
    assert completed_frame().is_empty()
