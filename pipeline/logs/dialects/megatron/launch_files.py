"""Sidecars: Megatron-LM's arguments and Megatron-Bridge's overrides, as files that launch scripts take them from.

Formats: megatron/training/arguments.py (`--name value`, switches without one), scripts/training/run_recipe.py of Bridge
(`section.field=value` over a recipe). The first file is whole: a switch that it does not name is off. The second
changes a recipe, which states what it does not name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from sweepscope.pipeline.logs.dialects.megatron.settings import NAMES
from sweepscope.pipeline.logs.sidecars.run_files import beside

_SHARDED = {"optim": "1", "optim_grads": "2", "optim_grads_params": "3", "no_shard": "0"}
_OVERRIDE = re.compile(r"\+{0,2}(?:model|train|dataset|ddp|optimizer)\.(\w+)=(.*)")
_FSDP = ("use_megatron_fsdp", "use_custom_fsdp")


def read_arguments(text: str) -> Mapping[str, str]:
    """Columns of `runs` from `--name value` pairs. Raises ValueError for a text without Megatron's."""
    words = _words(text)
    given: dict[str, str] = {}
    for at, word in enumerate(words):
        if word.startswith("--"):
            name, separator, value = word[2:].partition("=")
            following = words[at + 1] if at + 1 < len(words) else "--"
            given[name.replace("-", "_")] = value if separator else "True" if following.startswith("--") else following
    if "tensor_model_parallel_size" not in given and "micro_batch_size" not in given:
        raise ValueError("it holds no --tensor-model-parallel-size and no --micro-batch-size of Megatron-LM")
    found = _columns(given)
    switches = {
        "sequence_parallel": "sequence_parallel" in given,
        "gated_mlp": "swiglu" in given,
        "tie_word_embeddings": "untie_embeddings_and_output_weights" not in given,
    }
    found["zero_stage"] = _zero_stage(given, "use_distributed_optimizer" in given)
    found["recompute"] = given.get("recompute_granularity", "selective" if "recompute_activations" in given else "none")
    for name in ("tp", "pp", "cp", "ep"):
        found.setdefault(name, "1")  # the defaults of arguments.py
    if "group_query_attention" not in given and "num_heads" in found:
        found["num_kv_heads"] = found["num_heads"]
    return found | {name: str(value).lower() for name, value in switches.items()}


def read_overrides(text: str) -> Mapping[str, str]:
    """Columns of `runs` from `section.field=value` pairs. Raises ValueError for a text without Bridge's."""
    pairs = [hit.groups() for word in _words(text) if (hit := _OVERRIDE.fullmatch(word))]
    given = {name: value for name, value in pairs if value != "null"}
    if not pairs:
        raise ValueError("it holds no override of Megatron-Bridge, such as model.tensor_model_parallel_size=2")
    found = _columns(given)
    if (stated := given.get("use_distributed_optimizer")) is not None:
        found["zero_stage"] = _zero_stage(given, stated == "true")
    if any(name == "recompute_granularity" for name, _ in pairs):
        found["recompute"] = given.get("recompute_granularity", "none")
    if "gated_linear_unit" in given:
        found["gated_mlp"] = given["gated_linear_unit"]
    if "share_embeddings_and_output_weights" in given:
        found["tie_word_embeddings"] = given["share_embeddings_and_output_weights"]
    return found


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise ValueError(f"no words of a command line: {error}") from error


def _columns(given: Mapping[str, str]) -> dict[str, str]:
    """What names state directly; the inputs of rules are worked out here, for the file is no dump of all arguments."""
    found = {column: given[name] for name, column in NAMES.items() if name in given and not column.startswith("arg:")}
    if "sequence_parallel" in found:
        found["sequence_parallel"] = found["sequence_parallel"].lower()
    for name, column in (
        ("num_query_groups", "num_kv_heads"),
        ("vocab_size", "vocab_size"),
        ("num_experts", "num_experts"),
        ("num_moe_experts", "num_experts"),
        ("moe_router_topk", "experts_per_token"),
        ("moe_ffn_hidden_size", "expert_ffn_hidden_size"),
    ):
        if name in given:
            found[column] = given[name]
    chunk, layers, stages = (
        given.get(name, "")
        for name in ("num_layers_per_virtual_pipeline_stage", "num_layers", "pipeline_model_parallel_size")
    )
    if all(text.isdecimal() and int(text) for text in (chunk, layers, stages)):
        found["vpp"] = str(int(layers) // (int(stages) * int(chunk)))
    if given.get("bf16", "").lower() == "true":
        found["precision"] = "bf16"
    return found


def _zero_stage(given: Mapping[str, str], is_distributed: bool) -> str:
    if any(given.get(name, "").lower() == "true" for name in _FSDP):
        return _SHARDED.get(given.get("data_parallel_sharding_strategy", "optim_grads_params"), "3")
    return "1" if is_distributed else "0"


SIDECARS = (
    *beside(read_arguments, "megatron_arguments*.txt"),
    *beside(read_overrides, "bridge_overrides*.txt"),
)
