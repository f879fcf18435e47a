"""Megatron-LM: the arguments of pretrain_gpt.py (megatron/training/arguments.py), one to a line; and Megatron-Bridge.

Bridge (and NeMo on top of it) takes a recipe and changes what that returns by `section.field=value`
(scripts/training/run_recipe.py, src/megatron/bridge/training/config.py ConfigContainer). The recipe brings data and
optimizer; the model's shape is stated, so that any recipe of its family will do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.launch.framework import HERE, Files, Framework
from sweepscope.pipeline.launch.planned import Planned

ARGUMENTS = "megatron_arguments.txt"
OVERRIDES = "bridge_overrides.txt"

_STATES = (
    *("tp", "pp", "cp", "ep", "mbs", "gbs", "seq_len", "steps_planned", "zero_stage", "recompute", "sequence_parallel"),
    *("num_layers", "hidden_size", "num_heads", "num_kv_heads", "ffn_hidden_size"),
)
_FSDP = {2: "optim_grads", 3: "optim_grads_params"}
"""Sharding of Megatron-FSDP by ZeRO stage; stage 1 is the distributed optimizer."""


def _parallel(run: Planned) -> dict[str, Any]:
    """Fields that both have under the same name."""
    shape = run.shape
    return {
        "tensor_model_parallel_size": run.tp,
        "pipeline_model_parallel_size": run.pp,
        "context_parallel_size": run.cp,
        "expert_model_parallel_size": run.ep,
        "sequence_parallel": run.sequence_parallel,
        "num_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "ffn_hidden_size": shape.ffn_hidden_size,
        "num_attention_heads": shape.num_heads,
        "num_query_groups": shape.num_kv_heads,
        **({"kv_channels": shape.head_dim} if shape.head_dim else {}),
        **({} if run.recompute == "none" else {"recompute_granularity": run.recompute}),
        **({"recompute_method": "uniform", "recompute_num_layers": 1} if run.recompute == "full" else {}),
    }


def _experts(run: Planned) -> dict[str, Any]:
    shape = run.shape
    if not shape.num_experts:
        return {}
    shared = shape.shared_ffn_hidden_size
    return {
        "moe_router_topk": shape.experts_per_token,
        "moe_ffn_hidden_size": shape.expert_ffn_hidden_size,
        **({"moe_shared_expert_intermediate_size": shared} if shared else {}),
        **({"moe_layer_freq": _expert_layers(run)} if shape.num_dense_layers else {}),
    }


def _expert_layers(run: Planned) -> str:
    """Which layers have experts, as both write the pattern."""
    dense = run.shape.num_dense_layers
    return f"([0]*{dense}+[1]*{run.shape.num_layers - dense})"


def arguments(run: Planned) -> dict[str, Any]:
    """Names and values of pretrain_gpt.py; True for a switch."""
    shape = run.shape
    return {
        **{name: value for name, value in _parallel(run).items() if value is not False},
        **({"num_layers_per_virtual_pipeline_stage": shape.num_layers // (run.pp * run.vpp)} if run.vpp > 1 else {}),
        "group_query_attention": shape.num_kv_heads != shape.num_heads,
        **({"num_experts": shape.num_experts} if shape.num_experts else {}),
        **_experts(run),
        **_sharding(run),
        "micro_batch_size": run.mbs,
        "global_batch_size": run.gbs,
        "seq_length": run.seq_len,
        "max_position_embeddings": run.seq_len,
        "train_iters": run.steps,
        "swiglu": shape.gated_mlp,
        "untie_embeddings_and_output_weights": not shape.tie_word_embeddings,
        "normalization": "RMSNorm",
        "disable_bias_linear": True,
        "position_embedding_type": "rope",
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "bf16": True,
        **({"fp8_format": "hybrid"} if run.precision == "fp8" else {}),
        "mock_data": True,
        "tokenizer_type": "NullTokenizer",
        "vocab_size": shape.vocab_size,
        "lr": 3e-4,
        "log_interval": 1,
        "log_throughput": True,
        "eval_iters": 0,
        "exit_duration_in_mins": max(run.walltime_s // 60 - 1, 1),
        "record_memory_history": True,
        "memory_snapshot_path": "memory_snapshot.pickle",
    }


def _sharding(run: Planned) -> dict[str, Any]:
    if run.zero_stage in _FSDP:
        return {
            "use_megatron_fsdp": True,
            "data_parallel_sharding_strategy": _FSDP[run.zero_stage],
            "ckpt_format": "fsdp_dtensor",
        }
    found: dict[str, Any] = {"use_distributed_optimizer": run.zero_stage == 1}
    if run.is_sharded and run.dp_replicate > 1:
        found["num_distributed_optimizer_instances"] = run.dp_replicate
    return found


def argument_lines(run: Planned) -> list[str]:
    """`--name value`, one to a line; a switch without a value."""
    found = [(f"--{name.replace('_', '-')}", value) for name, value in arguments(run).items() if value is not False]
    return [name if value is True else f"{name} {value}" for name, value in found]


def overrides(run: Planned) -> dict[str, Any]:
    """Fields of Megatron-Bridge's ConfigContainer that a recipe is changed by."""
    shape = run.shape
    model = {
        **_parallel(run),
        **({"num_moe_experts": shape.num_experts} if shape.num_experts else {}),
        **_experts(run),
        **({"virtual_pipeline_model_parallel_size": run.vpp} if run.vpp > 1 else {}),
        "seq_length": run.seq_len,
        "gated_linear_unit": shape.gated_mlp,
        "share_embeddings_and_output_weights": shape.tie_word_embeddings,
        "recompute_granularity": None if run.recompute == "none" else run.recompute,
    }
    is_sharded = run.zero_stage >= 1
    fsdp = {"use_megatron_fsdp": True, "data_parallel_sharding_strategy": _FSDP.get(run.zero_stage)}
    return {
        **{f"model.{name}": value for name, value in model.items()},
        "train.micro_batch_size": run.mbs,
        "train.global_batch_size": run.gbs,
        "train.train_iters": run.steps,
        "dataset.seq_length": run.seq_len,
        "ddp.use_distributed_optimizer": is_sharded,
        "optimizer.use_distributed_optimizer": is_sharded,
        **({f"ddp.{name}": value for name, value in fsdp.items()} if run.zero_stage in _FSDP else {}),
        **({"ddp.num_distributed_optimizer_instances": run.dp_replicate} if run.is_sharded else {}),
        "logger.log_interval": 1,
        "logger.log_throughput": True,
        "profiling.record_memory_history": True,
        "profiling.memory_snapshot_path": "memory_snapshot.pickle",
    }


def override_lines(run: Planned) -> list[str]:
    """`section.field=value`, one to a line, as Hydra reads values."""
    words = {None: "null", True: "true", False: "false"}
    return [
        f"{name}={words[value] if value is None or isinstance(value, bool) else value}"
        for name, value in overrides(run).items()
    ]


def recipe(model: str) -> str:
    """Name of the recipe of a model, by the pattern of Bridge's names; it can be set by RECIPE, too.

    >>> recipe("Llama 3 8B"), recipe("Qwen3 0.6B")
    ('llama3_8b_pretrain_config', 'qwen3_0_6b_pretrain_config')
    """
    words = re.sub(r"[^a-z0-9]+", "_", model.lower().replace("llama 3 ", "llama3 ")).strip("_")
    return f"{words}_pretrain_config"


def _refuse(row: Mapping[str, Any]) -> str | None:
    if row["zero_stage"] > 1 and (row["pp"] > 1 or row["dp_replicate"] > 1):
        return "Megatron-FSDP runs without pipelines here, and shards over all replicas"
    if row.get("num_layers") and row["num_layers"] % (row["pp"] * row["vpp"]):
        return "layers do not divide evenly into pipeline stages"
    return None


_DEGREES = frozenset({"tp", "pp", "cp", "ep", "vpp", "dp_replicate"})


def _megatron_files(run: Planned) -> Files:
    return {ARGUMENTS: "\n".join(argument_lines(run)) + "\n"}


def _bridge_files(run: Planned) -> Files:
    return {OVERRIDES: "\n".join(override_lines(run)) + "\n"}


MEGATRON = Framework(
    name="megatron",
    framework="megatron",
    about=f"arguments of pretrain_gpt.py in {ARGUMENTS}, mock data; set TRAINER_DIR to a checkout",
    degrees=_DEGREES,
    zero_stages=(0, 1, 2, 3),
    recompute=("none", "selective", "full"),
    schedules=("1f1b", "interleaved"),
    states=(*_STATES, "vocab_size", "gated_mlp", "tie_word_embeddings"),
    files=_megatron_files,
    command=lambda _run: ('"$TRAINER_DIR/pretrain_gpt.py"', f"$(cat {HERE}/{ARGUMENTS})"),
    environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    refuse=_refuse,
    takes_moe=True,
    precisions=("bf16", "fp8"),
)
BRIDGE = Framework(
    name="megatron-bridge",
    framework="megatron",
    about=f"a recipe with the overrides in {OVERRIDES}, mock data (NeMo); set TRAINER_DIR to a checkout",
    degrees=_DEGREES,
    zero_stages=(0, 1, 2, 3),
    recompute=("none", "selective", "full"),
    schedules=("1f1b", "interleaved"),
    states=_STATES,
    files=_bridge_files,
    command=lambda run: (
        '"$TRAINER_DIR/scripts/training/run_recipe.py"',
        "--recipe",
        f'"${{RECIPE:-{recipe(run.model)}}}"',
        "--mode",
        "pretrain",
        "--dataset",
        "mock",
        f"$(cat {HERE}/{OVERRIDES})",
    ),
    environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    refuse=_refuse,
    takes_moe=True,
)
