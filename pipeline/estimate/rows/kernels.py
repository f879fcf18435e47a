"""How a trainer runs its kernels: operator by operator, compiled, or as CUDA graphs; and which of them are fused.

`execution` is the word for the first: it decides what a launch costs the processor, and a compiled layer is fused by
TorchInductor (or XLA). `norm_kernel`, `rotary_kernel`, `activation_kernel` and `loss_kernel` are forms of the operators
of `physics.elementwise`. What a row does not say is the framework's usual choice; of a framework that nothing is known
of, launches cost the geometric mean of eager and compiled ones (`kernel_launch_s` of a generation), and the interval of
its step time reaches from the one to the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sweepscope.pipeline.estimate.physics.elementwise import OPERATORS
from sweepscope.pipeline.estimate.physics.profile import Profile

EXECUTIONS: Final = ("eager", "compiled", "graphs")
"""Words of the column `execution`, slowest launches first."""
KERNELS: Final = {f"{name}_kernel": name for name, one in OPERATORS.items() if len(one.forms) > 1}
"""Columns of forms, and the operator of each."""
FORMS: Final = {column: tuple(OPERATORS[name].forms) for column, name in KERNELS.items()}
"""Words that each of these columns can hold."""
_LAUNCHES: Final = {"eager": "eager_launch_s", "compiled": "compiled_launch_s", "graphs": "graph_launch_s"}

_BEFORE_COMPILATION: Final = re.compile(r"1\.\d")
"""Versions of PyTorch without `torch.compile`, which came with 2.0."""

_EAGER: Final[dict[str, str]] = {"execution": "eager"}
_OF_TORCH: Final = {**_EAGER, **dict.fromkeys(KERNELS, "eager")}
"""Models written in PyTorch's operators alone."""
_COMPILED: Final = {"execution": "compiled"}
USUAL_KERNELS: Final[dict[str, dict[str, str]]] = {
    **dict.fromkeys(("megatron", "nemo", "ms-swift", "megatron-deepspeed", "internevo"), _EAGER),
    "composer": {**_EAGER, "loss_kernel": "fused"},
    "nanotron": {**_EAGER, "rotary_kernel": "eager", "activation_kernel": "eager"},
    "picotron": {**_EAGER, "activation_kernel": "eager"},
    "gpt-neox": {**_EAGER, "rotary_kernel": "eager"},
    **dict.fromkeys(("torchtune", "hf-trainer", "accelerate", "axolotl", "openrlhf", "verl"), _OF_TORCH),
    **dict.fromkeys(("deepspeed", "lightning", "colossalai", "llama-cookbook"), _OF_TORCH),
    **dict.fromkeys(("torchtitan", "nanogpt", "lingua", "fms-fsdp", "litgpt", "olmo-core"), _COMPILED),
    **dict.fromkeys(("maxtext", "paxml", "axlearn", "levanter"), _COMPILED),
    "mlperf": {"execution": "graphs"},
}
"""What trainers do where a row does not say; an operator that is not named is in its usual form.

Compiled by default: nanoGPT (`train.py: compile`), fms-fsdp (`config/training.py: use_torch_compile`), lingua
(`distributed.py: compile`), litgpt's pre-training (`pretrain.py`), OLMo-core's official scripts (`compile_model`),
and what XLA runs; torchtitan compiles where asked for (`[compile] enable`), as 30 of its 32 published rows do,
torchtune where its recipes say `compile: True`, which none does by itself. MLPerf's configurations capture layers as
graphs (`config_common_cg.sh`). Normalisation, rotary embedding and gate are fused by Transformer Engine and
Megatron-Core (`fusions/`), InternEvo's and llm-foundry's kernels are Apex's, flash-attention's and PyTorch's own;
nanotron and picotron take flash-attention's normalisation, and nanotron applies activation function and gate apart
(`models/llama.py: GLUActivation`) and rotates in five kernels (`LlamaRotaryEmbedding`); GPT-NeoX fuses rotations
where asked for (`rope_fusion`). llm-foundry's loss is flash-attention's (`models/mpt/modeling_mpt.py`)."""


def usual_kernels(framework: str | None) -> Mapping[str, str]:
    """`execution` and forms of a framework; empty where nothing is known of it."""
    return USUAL_KERNELS.get(framework or "", {})


def _form(column: str, row: Mapping[str, Any], usual: Mapping[str, str]) -> str:
    """Form of an operator: as the row states it, the compiler's where it is compiled, else as `usual`.

    What runs eagerly though it is compiled by default, or though nothing is known of it, is in PyTorch's operators.
    """
    operator = OPERATORS[KERNELS[column]]
    execution = row.get("execution") or usual.get("execution")
    if (stated := row.get(column)) in operator.forms:
        return str(stated)
    if execution == "compiled":
        return operator.compiled
    if column in usual:
        return usual[column]
    is_plain = row.get("execution") == "eager" and usual.get("execution") in (None, "compiled")
    return "eager" if is_plain else operator.usual


def with_kernels(
    profile: Profile, row: Mapping[str, Any], framework: str | None
) -> tuple[dict[str, float | bool | str], list[str]]:
    """(constants that a row's kernels decide, notes on what was taken for granted).

    A profile that was fitted to runs describes their kernels (`about.kernels`, else what its framework usually has):
    only what a row states otherwise counts.
    """
    usual = usual_kernels(framework)
    described: Mapping[str, str] = {}
    if is_fitted := profile.about.get("kind") == "fitted":
        described = usual = profile.about.get("kernels", usual)
    elif not usual and _BEFORE_COMPILATION.match(row.get("torch_version") or ""):
        usual = _EAGER
    elif profile.runs_compiled:
        usual = _COMPILED
    changes: dict[str, float | bool | str] = {}
    for column, name in KERNELS.items():
        for constant, more in _between(name, _form(column, {}, described), _form(column, row, usual)).items():
            changes[constant] = max(getattr(profile, constant) + more, 0.0)
    execution = row["execution"] or usual.get("execution")
    if execution in _LAUNCHES and execution != described.get("execution"):
        changes["kernel_launch_s"] = getattr(profile, _LAUNCHES[execution])
    if execution or is_fitted:
        return changes, [] if row["execution"] or is_fitted else [f"{execution} execution"]
    unstated = [name for column, name in KERNELS.items() if name != "loss" and not row.get(column)]
    return (
        {**changes, "is_launch_open": True, "open_operators": ",".join(unstated)},
        ["execution between eager and compiled"],
    )


_CONSTANTS: Final = {
    "hidden": ("unfused_norm_bytes", "unfused_norm_kept_bytes"),
    "inner": ("unfused_inner_bytes", "mlp_bytes_gated"),
    "query": ("unfused_query_bytes", "rotary_copies"),
    "logit": ("head_bytes_per_logit", "logit_bytes"),
}
"""Constants of bytes moved and bytes kept, by width."""


def eager_forms(profile: Profile) -> dict[str, float]:
    """Constants of `profile` with its open operators as PyTorch runs them one by one."""
    changes: dict[str, float] = {}
    for name in filter(None, profile.open_operators.split(",")):
        for constant, more in _between(name, OPERATORS[name].usual, "eager").items():
            changes[constant] = getattr(profile, constant) + more
    return changes


def _between(name: str, described: str, form: str) -> dict[str, float]:
    """What constants grow by from one form of an operator to another."""
    if described == form:
        return {}
    operator = OPERATORS[name]
    old, new = operator.forms[described], operator.forms[form]
    moved, kept = _CONSTANTS[operator.width]
    return {moved: new.moved - old.moved, kept: new.kept - old.kept}
