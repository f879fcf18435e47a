"""What rows leave open is filled with the commonest choice, and named."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from tests.pipeline.estimate.rows.test_estimate_rows import row


def estimated(**changes: object) -> dict[str, Any]:
    return estimate_frame(pl.DataFrame([row(**changes)]), assumes=True).row(0, named=True)


def test_a_batch_without_its_parts_is_accumulated_one_sequence_at_a_time() -> None:
    open_ = estimated(micro_batch_size=None, grad_accum=None, global_batch_size_seqs=128, dp=4, tp=2)
    said = estimated(micro_batch_size=1, grad_accum=32, global_batch_size_seqs=128, dp=4, tp=2)
    assert open_["est_step_time_s"] == said["est_step_time_s"]
    assert "micro-batches of one sequence" in open_["est_assumptions"]
    assert "micro-batches" not in (said["est_assumptions"] or "")


def test_without_a_batch_nothing_is_accumulated_unless_a_pipeline_needs_it() -> None:
    nothing = {"grad_accum": None, "global_batch_size_seqs": None, "global_batch_tokens": None}
    alone = estimated(**nothing, micro_batch_size=2, dp=4, tp=2)
    assert alone["est_step_time_s"] == estimated(micro_batch_size=2, grad_accum=1, dp=4, tp=2)["est_step_time_s"]
    assert "no accumulation" in alone["est_assumptions"]
    one = estimated(**nothing, micro_batch_size=None, dp=4, tp=2)
    assert one["est_step_time_s"] == estimated(micro_batch_size=1, grad_accum=1, dp=4, tp=2)["est_step_time_s"]
    piped = estimated(**nothing, micro_batch_size=2, dp=2, tp=2, pp=2)
    usual = estimated(micro_batch_size=2, grad_accum=256, dp=2, tp=2, pp=2)  # 1,024 sequences of 4,096 tokens
    assert piped["est_step_time_s"] == usual["est_step_time_s"]
    assert "256 micro-batches a step" in piped["est_assumptions"]


def test_a_layout_that_is_left_open_is_the_fastest_that_fits() -> None:
    open_ = {"dp": None, "tp": None, "pp": None, "micro_batch_size": None, "grad_accum": None}
    found = estimated(**open_, num_gpus=16, global_batch_size_seqs=128)
    assert found["est_status"] == "ok"
    assert found["est_fits"]
    assert "the fastest layout that fits, of what is left open: DP" in found["est_assumptions"]
    for dp, tp, mbs in ((8, 2, 1), (4, 4, 2), (2, 8, 8)):
        at = {"num_gpus": 16, "dp": dp, "tp": tp, "micro_batch_size": mbs, "grad_accum": 128 // dp // mbs}
        stated = estimated(**at)
        assert not stated["est_fits"] or stated["est_step_time_s"] >= found["est_step_time_s"]
    kept = estimated(**{**open_, "tp": 4}, num_gpus=16, global_batch_size_seqs=128)
    assert "TP4" in kept["est_assumptions"]
    assert kept["est_step_time_s"] >= found["est_step_time_s"]


def test_accelerators_and_batch_that_nothing_gives_are_the_usual() -> None:
    open_ = {"dp": None, "tp": None, "pp": None, "micro_batch_size": None, "grad_accum": None, "num_gpus": None}
    found = estimated(**open_, global_batch_size_seqs=None, global_batch_tokens=None)
    assert "1,024 accelerators" in found["est_assumptions"]
    assert "a batch of 1,024 sequences" in found["est_assumptions"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"accelerator": None}, "accelerator not stated"),
        ({"num_gpus": 16, "dp": 3, "tp": None, "pp": None}, "layout incomplete: tp, pp not stated"),
        ({"num_gpus": 16, "dp": 4, "tp": 2}, "layout needs 8 accelerators, the row has 16 (correct num_gpus"),
        ({"dp": 1, "tp": 1, "pp": 8, "num_layers": 4}, "(lower pp to the layers at most)"),
        ({"tp": "many"}, "not understood: tp = many"),
    ],
)
def test_what_no_assumption_mends_is_refused(changes: dict[str, Any], reason: str) -> None:
    got = estimated(**changes)
    assert reason in got["est_status"]
    assert got["est_step_time_s"] is None


def test_sequences_of_unstated_length_are_the_usual() -> None:
    assert "sequences of 4,096 tokens" in estimated(seq_len=None)["est_assumptions"]


@pytest.mark.parametrize(("size", "layers", "width"), [(175.0, 97, 12288), (52.0, 65, 8192), (1.3, 26, 2048)])
def test_a_model_of_unknown_shape_has_the_usual_proportions(size: float, layers: int, width: int) -> None:
    nothing = dict.fromkeys(("num_heads", "num_kv_heads", "ffn_hidden_size", "vocab_size", "gated_mlp"))
    found = estimated(model="mine", num_layers=None, hidden_size=None, total_params_b=size, dp=8, tp=1, **nothing)
    said = estimated(
        **{**nothing, "gated_mlp": False, "num_heads": width // 128, "ffn_hidden_size": 4 * width, "vocab_size": 51200},
        model="mine",
        num_layers=layers,
        hidden_size=width,
        dp=8,
        tp=1,
    )
    assert found["est_step_time_s"] == said["est_step_time_s"]
    assert "of usual proportions" in found["est_assumptions"]


def test_an_interleaved_pipeline_of_unstated_chunks_has_two() -> None:
    at = {"dp": 2, "tp": 1, "pp": 4, "grad_accum": 8, "pipeline_schedule": "interleaved"}
    open_, two, plain = (estimated(**at, vpp=vpp) for vpp in (None, 2, 1))
    assert open_["est_time_bubble_s"] == two["est_time_bubble_s"] < plain["est_time_bubble_s"]
    assert "two chunks on each stage" in open_["est_assumptions"]


def test_recomputation_of_some_layers_is_estimated_as_that_of_all() -> None:
    some = estimated(recompute="partial (block, 4 layers)")
    assert some["est_step_time_s"] == estimated(recompute="full")["est_step_time_s"]
    assert "some layers" in some["est_assumptions"]


def test_fp8_on_a_card_without_it_is_estimated_as_16_bit() -> None:
    found = estimated(accelerator="A100-SXM-80GB", precision="fp8")
    assert found["est_step_time_s"] == estimated(accelerator="A100-SXM-80GB", precision="bf16")["est_step_time_s"]
    assert "has none" in found["est_assumptions"]


def test_mlperf_interleaves_where_a_row_names_no_schedule() -> None:
    at = {"num_gpus": 8, "dp": 1, "tp": 1, "pp": 8, "grad_accum": 8, "num_layers": 96, "framework": "mlperf"}
    open_, six = estimated(**at), estimated(**at, vpp=6, pipeline_schedule="interleaved")
    assert open_["est_time_bubble_s"] == six["est_time_bubble_s"]
    assert "6 chunks on each stage" in open_["est_assumptions"]
    plain = estimated(**at, pipeline_schedule="1f1b")
    assert plain["est_time_bubble_s"] > open_["est_time_bubble_s"]
    other = estimated(**{**at, "framework": "megatron"}, pipeline_schedule="1f1b")
    assert "chunks" not in (other["est_assumptions"] or "")


def test_heads_of_usual_proportions_are_divided_by_tensor_parallelism() -> None:
    nothing = dict.fromkeys(("num_heads", "num_kv_heads", "ffn_hidden_size", "vocab_size", "gated_mlp"))
    found = estimated(model="mine", hidden_size=13824, num_layers=80, dp=1, tp=8, **nothing)  # 108 heads of 128
    assert found["est_status"] == "ok"
    assert "num_heads" in found["est_assumptions"]


def test_experts_of_unstated_width_are_as_wide_as_the_feed_forward_block() -> None:
    experts = {"num_experts": 8, "experts_per_token": 2, "ep": 4}
    open_, stated = estimated(**experts), estimated(**experts, expert_ffn_hidden_size=11008)
    assert open_["est_step_time_s"] == stated["est_step_time_s"]
    assert "experts as wide as ffn_hidden_size" in open_["est_assumptions"]
    assert "experts as wide" not in stated["est_assumptions"]
    assert "expert_ffn_hidden_size not stated" in estimated(**experts, num_dense_layers=1)["est_status"]


def test_columns_may_have_the_names_of_configurations_and_arguments() -> None:
    ours = estimated()
    theirs = {
        **{
            "num_hidden_layers": "num_layers",
            "num_attention_heads": "num_heads",
            "intermediate_size": "ffn_hidden_size",
        },
        **{"num_key_value_heads": "num_kv_heads", "tensor_model_parallel_size": "tp", "world_size": "num_gpus"},
        **{"gradient_accumulation_steps": "grad_accum", "seq_length": "seq_len", "d_model": "hidden_size"},
    }
    renamed = row()
    for name, own in theirs.items():
        renamed[name] = renamed.pop(own)
    found = estimate_frame(pl.DataFrame([renamed]), assumes=True).row(0, named=True)
    assert found["est_step_time_s"] == ours["est_step_time_s"]
    both = estimate_frame(pl.DataFrame([{**row(), "d_model": 1}]), assumes=True).row(0, named=True)
    assert both["est_step_time_s"] == ours["est_step_time_s"]
