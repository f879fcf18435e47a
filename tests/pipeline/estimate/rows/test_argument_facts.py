"""What arguments of several frameworks state of the facts that decide constants."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.argument_facts import FACTS_OF_ARGUMENTS, facts_of_arguments
from sweepscope.pipeline.estimate.rows.stated_facts import FACTS, PRECISIONS


def facts_of(**stated: str) -> dict[str, Any]:
    rows = [{"run_id": "r", "name": name.replace("__", "."), "value": value} for name, value in stated.items()]
    found = facts_of_arguments(pl.DataFrame(rows, schema={"run_id": pl.String, "name": pl.String, "value": pl.String}))
    return {
        name: value for name, value in (found.row(0, named=True) if len(found) else {}).items() if value is not None
    }


COMPILED = {"execution": "compiled"}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"overlap_grad_reduce": "True", "tp_comm_overlap": "False"}, {"overlap_dp": True, "overlap_tp": False}),
        ({"accumulate_allreduce_grads_in_fp32": "True"}, {"grad_precision": "fp32"}),
        ({"grad_reduce_in_fp32": "False", "params_dtype": "torch.bfloat16"}, {"grad_precision": "bf16"}),
        ({"training__mixed_precision_reduce": "float32"}, {"grad_precision": "fp32"}),
        (
            {"ddp_bucket_size": "40_000_000", "grad_reduce_in_fp32": "True"},
            {"grad_precision": "fp32", "bucket_mb": 160.0},
        ),
        ({"model__ddp_bucket_cap_mb": "25"}, {"bucket_mb": 25.0}),
        ({"ddp_bucket_cap_mb": "None"}, {}),
        (
            {"first_last_layers_bf16": "True", "num_layers_at_end_in_bf16": "4", "fp4": "e2m1"},
            {"bf16_layers": 5.0},
        ),
        ({"moe_token_dispatcher_type": "flex"}, {"token_dispatcher": "flex"}),
        ({"moe_token_dispatcher_type": "theirs"}, {}),
        ({"comm_overlap__overlap_moe_expert_parallel_comm": "True"}, {"overlap_ep": True}),
        ({"overlap_moe_expert_parallel_comm": "False"}, {"overlap_ep": False}),
        ({"float8__recipe_name": "rowwise_with_gw_hp"}, {"fp8_scaling": "rowwise"}),
        ({"quantize__linear__float8__recipe_name": "tensorwise"}, {"fp8_scaling": "tensorwise"}),
        ({"fp8_recipe": "delayed", "recipe_name": "llama3_8b"}, {}),
        ({"first_last_layers_bf16": "False", "num_layers_at_end_in_bf16": "4"}, {"bf16_layers": 0.0}),
        ({"ddp_bucket_cap_mb": "inf"}, {}),
        ({"use_flash_attn": "True"}, {"flash_attention": "true"}),
        ({"attn_implementation": "eager"}, {"flash_attention": "false", "attention_kernel": "eager"}),
        ({"attention_backend": "AttnBackend.fused"}, {"flash_attention": "true", "attention_kernel": "cudnn"}),
        ({"attention_backend": "AttnBackend.auto"}, {}),
        ({"attention": "sdpa", "compile": "layer"}, {"flash_attention": "true", "attention_kernel": "sdpa"} | COMPILED),
        ({"compile": "none"}, {"execution": "eager"}),
        (
            {"attention_backend": "unfused", "masked_softmax_fusion": "False"},
            {"flash_attention": "false", "attention_kernel": "eager"},
        ),
        ({"parallelism__tp_linear_async_communication": "True"}, {"overlap_tp": True}),
        (
            {"recompute_modules": "['core_attn', 'moe_act']", "recompute_granularity": "selective"},
            {"recompute_modules": "core_attn,moe_act"},
        ),
        ({"recompute_modules": "['core_attn']", "recompute_granularity": "None"}, {}),
        (
            {"gradient_accumulation_fusion": "True", "exp_avg_dtype": "torch.float32"},
            {"fused_accumulation": True, "moment_precision": "fp32"},
        ),
        (
            {"zero_config": "stage=1 reduce_bucket_size=500000000 overlap_comm=False"},
            {"overlap_dp": False, "bucket_mb": 1000.0},
        ),
        ({"overlap_grad_reduce": "perhaps", "weight_decay": "0.1"}, {}),
        ({"torch_compile": "True"}, {"execution": "compiled"}),
        ({"torch_compile": "False", "torch_compile_mode": "None"}, {"execution": "eager"}),
        ({"torch_compile": "True", "torch_compile_mode": "reduce-overhead"}, {"execution": "graphs"}),
        ({"compile__enable": "true"}, {"execution": "compiled"}),
        ({"training__compile": "False"}, {"execution": "eager"}),
        ({"compile__enable": "True", "compile__components": "['model', 'loss']"}, {"execution": "compiled"}),
        (
            {"compile__enable": "True", "compile__components": '["loss"]'},
            {"execution": "eager", "loss_kernel": "compiled"},
        ),
        ({"dynamo_config__dynamo_backend": "INDUCTOR"}, {"execution": "compiled"}),
        ({"dynamo_backend": "DynamoBackend.NO"}, {"execution": "eager"}),
        ({"enable_cuda_graph": "False", "external_cuda_graph": "False"}, {"execution": "eager"}),
        ({"enable_cuda_graph": "False", "external_cuda_graph": "True"}, {"execution": "graphs"}),
        ({"cuda_graph_impl": "local", "cuda_graph_scope": "full"}, {"execution": "graphs"}),
        ({"cuda_graph_impl": "none", "cuda_graph_scope": "full"}, {"execution": "eager"}),
        ({"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration_inference"}, {}),
        ({"memory__enable": "true"}, {}),
        ({"use_liger_kernel": "False"}, {}),
        (
            {"use_liger_kernel": "True"},
            dict.fromkeys(("norm_kernel", "rotary_kernel", "activation_kernel", "loss_kernel"), "fused"),
        ),
        (
            {"apply_rope_fusion": "False", "bias_swiglu_fusion": "True", "cross_entropy_loss_fusion": "True"},
            {"rotary_kernel": "eager", "activation_kernel": "fused", "loss_kernel": "fused"},
        ),
    ],
)
def test_each_name(stated: dict[str, str], expected: dict[str, Any]) -> None:
    assert {name: value for name, value in facts_of(**stated).items() if name != "run_id"} == expected


def test_nothing_stated_no_rows() -> None:
    assert facts_of_arguments(
        pl.DataFrame(schema={"run_id": pl.String, "name": pl.String, "value": pl.String})
    ).is_empty()
    assert facts_of(weight_decay="0.1") == {}


def test_all_are_inputs_of_the_estimator() -> None:
    assert set(FACTS_OF_ARGUMENTS) - {"run_id"} <= set(FACTS)
    for name in ("grad_precision", "moment_precision"):
        assert facts_of(grad_reduce_in_fp32="True", exp_avg_dtype="torch.bfloat16")[name] in PRECISIONS[name]
