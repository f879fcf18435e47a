"""Facts of a row that decide constants of its profile: attention kernel, what overlaps, precisions, buckets, dispatch.

A column that is absent or empty leaves the profile as it is, which is the framework's commonest choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sweepscope.pipeline.estimate.physics.maturity import maturity
from sweepscope.pipeline.estimate.physics.memory import FP4_COPIES
from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles, with_values
from sweepscope.pipeline.estimate.rows.kernels import KERNELS, usual_kernels, with_kernels
from sweepscope.pipeline.reference.accelerators import EIGHT_BIT, SIXTEEN_BIT
from sweepscope.pipeline.reference.vocabulary import canonical_precision

OVERLAPS: Final = {"overlap_tp": "tp_hidden", "overlap_dp": "dp_hidden", "overlap_pp": "pp_hidden"}
"""Columns that say whether exchanges run beside compute, and the constant that each decides."""
PRECISIONS: Final = {
    "grad_precision": ("bf16", "fp16", "fp32"),
    "moment_precision": ("bf16", "fp16", "fp32", "fp8"),
    "master_precision": ("bf16", "fp16", "fp32"),
    "activation_precision": ("bf16", "fp16", "fp8", "fp4"),
    "dispatch_precision": ("bf16", "fp16", "fp8"),
}
"""Columns of precisions and what they can be: of gradients exchanged and kept, of the optimizer's moments and of the
weights that it updates (in 16 bit the model's own, without a copy), of what products keep for their gradients, of
tokens on their way to experts."""
FACTS: Final = (
    *("flash_attention", "attention_kernel", "fused_accumulation", "recompute_modules", "nodes_per_token", "bucket_mb"),
    *("bf16_layers", "token_dispatcher", "overlap_ep", "software_year", "execution", "fp8_scaling", "loss_parallel"),
    *KERNELS,
    *OVERLAPS,
    *PRECISIONS,
)
"""Columns that `with_facts` reads."""
_NOT_FUSED = ("false", "no", "none", "0", "torch", "megatron", "eager", "math")
_EAGER = re.compile(r"(?i)\b(?:eager|math|naive)\b")
"""Attention kernels that are none: an operator for each step of the softmax."""
_BYTES = 1e6
DISPATCHERS: Final = ("alltoall", "allgather", "flex", "deepep", "hybridep")
"""Words of the column `token_dispatcher`, Megatron-LM's and those of its flexible dispatcher's backends."""
_ONCE_PER_DOMAIN: Final = ("flex", "deepep", "hybridep")
"""Those that send a token once to each node and spread it there over links (deepseek-ai/DeepEP; Megatron-LM,
`moe/fused_a2a.py`)."""
SCALINGS: Final[dict[str, float]] = {"tensorwise": 1.0, "rowwise": 0.5}
"""Words of the column `fp8_scaling`, and how much of what products in FP8 gain with one scale for a tensor each keeps.
A scale for each row takes slower products and both ways of its casts. Of what Llama 3 8B's step gains on eight cards in
torchtitan 0.46 (H100) and 0.68 (MI300X) is left in torchao's own benchmarks (pytorch/ao, torchao/float8/README.md, of
versions 0.10 and 0.13), 0.52 (H100) in the commit that tried it first (pytorch/torchtitan, 7a04053)."""
_UNASKED: Final = {"overlap_tp": False}
"""What code does that nobody wrote more of."""
_MEGATRON: Final = {"attention_kernel": "cudnn", "fused_accumulation": True, "overlap_tp": True}
USUAL: Final[dict[str, dict[str, Any]]] = {
    "nemo": {**_MEGATRON, "grad_precision": "bf16"},
    "mlperf": {**_MEGATRON, "grad_precision": "bf16"},
    "megatron": _MEGATRON,
    "megatron-deepspeed": {"flash_attention": "false", "overlap_dp": False},
    "megatron-deepspeed on gaudi": {"overlap_dp": False},
    "internevo": {"grad_precision": "bf16"},
    "nanotron": {"overlap_tp": True},
    "maxtext": {"attention_kernel": "cudnn"},
}
"""What trainers do where a row does not say. NeMo's launcher synchronises gradients in the trainer's precision
(`launcher_scripts/conf/training/gpt3`: `grad_sync_dtype`), and so do the MLPerf submissions that are made with it.
Transformer Engine, on which these and Megatron-LM rest, prefers cuDNN's attention on Hopper and later
(`transformer_engine/pytorch/attention`: `get_attention_backend`), and their products add up gradients
(`gradient_accumulation_fusion`). Megatron-LM starts exchanges of the backward pass before the gradients of weights
(`core/tensor_parallel/layers.py`: `LinearWithGradAccumulationAndAsyncCommunication`); NeMo's recipes and MLPerf's
overlap more (`tp_comm_overlap`). nanotron has that code, too (`parallel/tensor_parallel/functional.py:
_ColumnLinearAsyncCommunication`), and its configurations ask for it (`tp_linear_async_communication`). Trainers without
such code wait for tensor exchanges: layouts of InternEvo, torchtitan (but for `enable_async_tensor_parallel`) and
SimuMax's machine are ranked better so. Megatron-DeepSpeed's
attention is not fused unless asked for (`--use-flash-attn`), and its pipeline reduces gradients after the last backward
pass (DeepSpeed, `runtime/pipe/engine.py: _exec_reduce_grads`); on Gaudi it is that of FORKS. InternEvo adds up and
reduces gradients in the precision of its weights (`hybrid_zero_optim.py: _reduce_and_copy`). MaxText's configurations
for GPUs ask for cuDNN's attention by Transformer Engine (`configs/models/gpu`: `attention: "cudnn_flash_te"`)."""
FIRST: Final[dict[str, float]] = {"overlap_tp": 2021.7, "fused_accumulation": 2022.1}
"""Years from which trainers that have it had code for a fact of USUAL: Megatron-LM's first commits (NVIDIA/Megatron-LM,
3f65246, `--no-async-tensor-model-parallel-allreduce`; 83b1e42, `--no-gradient-accumulation-fusion`)."""
FIRST_SPLIT: Final = 2022.3
"""Sequence parallelism (NVIDIA/Megatron-LM, cfd2e21; 2205.05198)."""
FIRST_FLASH: Final[dict[str | None, float]] = {None: 2022.4, "megatron": 2022.9, "nemo": 2022.9}
"""Fused attention, by trainer where it came later (2205.14135; NVIDIA/Megatron-LM, d693034)."""
FIRST_DEEPEP: Final = 2025.1
"""Dispatchers that send a token once to each node (deepseek-ai/DeepEP); Megatron-LM hides exchanges soon after."""
FORKS: Final = {(card, "megatron-deepspeed"): "megatron-deepspeed on gaudi" for card in ("gaudi", "gaudi3")}
"""Trainers that cards (by the name of their profile) have a fork of: Intel's of Megatron-DeepSpeed has fused attention,
sequence parallelism, no dropout, and stages that send the whole (HabanaAI/Megatron-DeepSpeed, `scripts/run_llama.sh`:
`HL_USE_FUSED_SDPA`, `HL_SEQ_PARALLEL`, `HL_DROPOUT`, `pipe_partitioned`)."""
_PLAIN: Final = (
    *("", "other", "hf-trainer", "transformers", "trl", "accelerate", "lightning", "litgpt", "nanogpt", "torchtune"),
)
"""Trainers on PyTorch's own parameters and gradients, a script of one's own among them."""
_OF_TRANSFORMERS: Final = ("hf-trainer", "transformers", "trl", "accelerate")
"""Trainers of models in transformers, whose tensor parallelism returns whole logits (`modeling_llama.py: _tp_plan`)."""
ALONE: Final = ("frees_gradients",)
"""Constants that matter to one replica without accumulation alone, which no fit was made on."""
CHOICES: Final[dict[str, dict[str, Any]]] = {
    **{trainer: {"cut_sends": 2.0} for trainer in ("megatron", "nemo", "mlperf")},
    "megatron-deepspeed": {
        "is_sequence_parallel": False,
        "has_dropout": True,
        "reduces_whole": True,
        "cut_sends": 1.0,
        "unfused_hidden_bytes": 2.0,
        "unfused_query_bytes": 4.0,
    },
    "megatron-deepspeed on gaudi": {"reduces_whole": True},
    "internevo": {"reduces_whole": True},
    "oneflow": {"sends_beside": True},
    "nanotron": {
        "hides_gather": False,
        "placement": "by_cost",
        "grad_fresh_bytes": 0.0,
        "grad_bucket_bytes": 2.0,
        "logit_kept_bytes": 4.0,
        "exchange_buffer_bytes": 4.0,
        "unfused_query_bytes": 8.0,
    },
    "torchtitan": {"selective": "products", "frees_gradients": True},
    "picotron": {"gathers_logits": True},
    **{trainer: {"frees_gradients": True} for trainer in _PLAIN},
    **{trainer: {"frees_gradients": True, "gathers_logits": True} for trainer in _OF_TRANSFORMERS},
}
"""Constants that a trainer's source decides. PyTorch's optimizers drop gradients after a step (`Optimizer.zero_grad`:
`set_to_none`), and so do trainers without buffers of their own. BigScience's Megatron-DeepSpeed has no sequence
parallelism and dropout of 0.1 (`megatron/arguments.py`), and its pipeline in bf16 all-reduces gradients in 32 bit
under ZeRO-1 (DeepSpeed, `runtime/pipe/engine.py: _bf16_reduce_grads`) and cuts what it sends forward over tensor
ranks (`is_pipe_partitioned`), as Megatron-LM does both ways (`--no-scatter-gather-tensors-in-pipeline` asks
otherwise); InternEvo all-reduces them, too (`solver/optimizer/hybrid_zero_optim.py`: a hook without a rank to reduce
to); OneFlow's actors send while they compute (2110.15032 section 4); nanotron gathers weights after its optimizer's
step (`optim/zero.py`) and places layers by cost (`models/base.py`); torchtitan's selective recomputation saves every
second product (`_get_custom_policy`); llm-foundry's loss is flash-attention's, which keeps logits and their
gradients in 16 bit (`models/mpt/modeling_mpt.py`; Dao-AILab/flash-attention, csrc/xentropy); picotron gathers logits
before its loss (`tensor_parallel.py: apply_tensor_parallel`); MLPerf's configurations capture layers as CUDA graphs
(`config_common_cg.sh`). What nanotron keeps beside others: DDP's buckets in 16 bit, logits in 32 bit that live on,
the two buffers of gathered inputs (`parallel/utils.py: MemoryBuffer`).

Elementwise kernels that are not fused, in bytes that a forward pass moves beyond those that are: nanotron applies the
activation function and the product with the gate apart (`models/llama.py: GLUActivation`; 10 instead of 6), rotates
queries in five kernels (`LlamaRotaryEmbedding`: negate and join halves 6, two products 4 each, sum 6, instead of 4) and
copies queries and what attention returns to transpose them (4 each); Megatron-DeepSpeed writes and reads two masks of
dropout (1 byte each) and copies what attention returns (4)."""
TUNED: Final = re.compile(r"(?i)cudnn|transformer.?engine|\bte\b")
"""Attention kernels that are written for the generation they run on, whichever that is."""
_FLASH: Final = re.compile(r"(?i)\b(?:fa|flash(?:.?att(?:entio)?n)?)[-_ ]?v?(\d)")
"""FlashAttention by its version, each of which is written for one generation (`tuned_flash_version`)."""
_OF_ATTENTION: Final = ("attention_efficiency", "attention_half_tokens", "attention_half_width")
_SDPA: Final = re.compile(r"(?i)\bsdpa\b|scaled_dot_product")
_OF_SDPA: Final = (*_PLAIN, "torchtitan")
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_CUDNN_FIRST: Final = (2, 11)
"""Version of PyTorch whose `scaled_dot_product_attention` takes cuDNN's kernels before FlashAttention-2 on Hopper and
Blackwell: `check_prefer_cudnn_attention` (ATen/native/transformers/cuda/sdp_utils.cpp) wants cuDNN 9.15.1, which comes
with 2.11 (huggingface/transformers pull request 48163). `_OF_SDPA` call it by default."""


def _variant(framework: str | None, profile: Profile) -> str:
    """Name that a trainer goes by in USUAL and CHOICES on the cards of a profile."""
    return FORKS.get((profile.name, framework or ""), framework or "")


def with_usual_facts(profile: Profile, framework: str | None, stated: dict[str, Any] | None = None) -> Profile:
    """`profile` as a framework's usual choices have it, where there is no row: but for FACTS that are `stated`."""
    row: dict[str, Any] = {**dict.fromkeys(FACTS), **(stated or {})}
    return with_facts(with_choices(profile, framework), with_usual(row, framework, profile)[0], framework)


def with_choices(profile: Profile, framework: str | None) -> Profile:
    """`profile` with what the framework's source decides; one that was fitted has it already, but for ALONE."""
    choices = CHOICES.get(_variant(framework, profile), {})
    if profile.about.get("kind") == "fitted":
        choices = {name: value for name, value in choices.items() if name in ALONE}
    return with_values(profile, choices)


def with_usual(row: dict[str, Any], framework: str | None, profile: Profile) -> tuple[dict[str, Any], list[str]]:
    """(`row` with what its framework usually does where it says nothing, notes on that).

    A profile that was fitted to runs has their choices in its constants.
    """
    is_open = bool(profile.tuned_attention_efficiency) and not row["attention_kernel"]
    latest = (
        "FlashAttention-2, that of its year"
        if profile.tuned_since
        else "cuDNN attention, the default of PyTorch 2.11 and later"
    )
    chosen = [latest] * (is_open and has_tuned_attention(row, framework, profile))
    if profile.about.get("kind") == "fitted":
        return row, chosen
    if profile.software_since and not row["software_year"]:
        chosen = [*chosen, f"software of {profile.software_of:.0f}"]
    choices = USUAL.get(_variant(framework, profile), {})
    year = row["software_year"] or math.inf
    usual = {name: value for name, value in choices.items() if row[name] is None and year >= FIRST.get(name, 0.0)}
    if profile.tuned_since or not profile.tuned_attention_efficiency:
        usual.pop("attention_kernel", None)  # cuDNN's is preferred on Hopper and later alone
    words = [f"{name.replace('_', ' ')} {value}" for name, value in usual.items()]
    plain = {name: value for name, value in _UNASKED.items() if row[name] is None}
    return {**row, **plain, **usual}, [*chosen, *words, *with_kernels(profile, row, framework)[1]]


def modules_of(text: str) -> list[str]:
    """Modules that a row names, between commas or spaces, as Megatron's arguments do.

    >>> modules_of("layernorm mla_up_proj, moe_act")
    ['layernorm', 'mla_up_proj', 'moe_act']
    """
    return [word for word in re.split(r"[\s,;\[\]'\"]+", text.casefold()) if word]


def _width(precision: str) -> float:
    """Bytes of a number; with the scale of its block in FP4."""
    word = canonical_precision(precision)
    if word == "fp4":
        return FP4_COPIES / 2.0
    return 1.0 if word in EIGHT_BIT else 2.0 if word in SIXTEEN_BIT else 4.0


def with_facts(profile: Profile, row: dict[str, Any], framework: str | None = None) -> Profile:
    """`profile` as FACTS of a row of `framework` have it.

    What is stated to overlap hides as much as the profile has it, or as `default` where that hides nothing.
    """
    changes: dict[str, Any] = {**_not_yet(row, framework, profile), **with_kernels(profile, row, framework)[0]}
    if (flash := row["flash_attention"]) is not None:
        changes["is_flash"] = flash.strip().casefold() not in _NOT_FUSED
    is_fused = changes.get("is_flash", profile.is_flash)
    if is_fused and profile.tuned_attention_efficiency and has_tuned_attention(row, framework, profile):
        changes |= {name: getattr(profile, f"tuned_{name}") for name in _OF_ATTENTION}
    if _EAGER.search(row["attention_kernel"] or ""):
        changes |= {"is_flash": False, "softmax": "megatron" if framework == "megatron" else "eager"}
    for column, constant in OVERLAPS.items():
        if (overlaps := row[column]) is not None:
            usual = getattr(profile, constant) or getattr(load_profiles()["default"], constant)
            changes[constant] = usual if overlaps else 0.0
    if row["fused_accumulation"] is not None:
        changes["fuses_accumulation"] = row["fused_accumulation"]
    if row["overlap_dp"] is not None:
        changes["hides_gather"] = row["overlap_dp"]
    if row["loss_parallel"] is not None:
        changes["gathers_logits"] = not row["loss_parallel"]
    if row["bucket_mb"]:
        changes["bucket_bytes"] = _BYTES * row["bucket_mb"]
    if row["software_year"] and profile.about.get("kind") != "fitted":
        changes["software_rate"] = maturity(profile, row["software_year"])
    if row["fp8_scaling"] is not None:
        changes["gain_kept"] = SCALINGS[row["fp8_scaling"]]
    changes |= _kept_otherwise(row)
    if profile.about.get("kind") != "fitted":
        changes |= _open(row, framework, profile)
    return replace(profile, **changes) if changes else profile


def _not_yet(row: dict[str, Any], framework: str | None, profile: Profile) -> dict[str, Any]:
    """Constants of what no trainer had in the year of a row's software; a profile that was fitted has its own."""
    year = row["software_year"]
    if not year or profile.about.get("kind") == "fitted":
        return {}
    changes: dict[str, Any] = {"is_sequence_parallel": False} if year < FIRST_SPLIT else {}
    first = FIRST_FLASH.get(framework, FIRST_FLASH[None])
    return changes | ({"is_flash": False} if year < first and not row["attention_kernel"] else {})


def has_tuned_attention(row: dict[str, Any], framework: str | None, profile: Profile) -> bool:
    """Whether a row's attention is written for its card's generation: by its kernel's name, as PyTorch chooses it, or
    as trainers of its year have it (`tuned_since`), which a profile that was fitted has in its constants.

    >>> recent = {"attention_kernel": "sdpa", "torch_version": "2.11.0+cu130"}
    >>> has_tuned_attention(recent, None, load_profiles()["hopper"])
    True
    """
    kernel = row["attention_kernel"] or ""
    if flash := _FLASH.search(kernel):
        return int(flash[1]) >= profile.tuned_flash_version
    if profile.tuned_since:
        return profile.about.get("kind") != "fitted" and (row["software_year"] or 0.0) >= profile.tuned_since
    is_torch = bool(_SDPA.search(kernel)) or (not kernel and (framework or "") in _OF_SDPA)
    version = _VERSION.match(row.get("torch_version") or "")
    is_recent = version is not None and tuple(map(int, version.groups())) >= _CUDNN_FIRST
    return bool(TUNED.search(kernel)) or (is_torch and is_recent)


def _open(row: dict[str, Any], framework: str | None, profile: Profile) -> dict[str, bool]:
    """Which choices nothing says (`rows.open_ends`): of dispatchers and what hides them, since there is DeepEP, and of
    the loss, of what it is computed of, and of sends between stages where nothing is known of the framework."""
    is_recent = (row["software_year"] or math.inf) >= FIRST_DEEPEP
    return {
        "is_gather_open": row["loss_parallel"] is None and not usual_kernels(framework),
        "is_state_open": are_states_open(row, framework),
        "is_dispatch_open": is_recent and row["token_dispatcher"] is None and not row["nodes_per_token"],
        "is_experts_overlap_open": is_recent and row["overlap_ep"] is None,
        "is_loss_open": row["loss_kernel"] is None and row["execution"] != "compiled" and not usual_kernels(framework),
        "is_send_open": row["overlap_pp"] is None and not usual_kernels(framework) and not profile.sends_beside,
    }


def are_states_open(row: Mapping[str, Any], framework: str | None) -> bool:
    """Whether nothing says if weights, gradients and moments are all in 16 bit: not of a trainer on PyTorch's own
    parameters, which may be in any type, nor of one that nothing is known of."""
    is_unstated = all(row[name] is None for name in ("grad_precision", "moment_precision", "master_precision"))
    return is_unstated and (framework in _PLAIN or not usual_kernels(framework))


def _kept_otherwise(row: dict[str, Any]) -> dict[str, Any]:
    """Constants that a row's precisions, recomputed modules and limits of dispatch decide."""
    changes: dict[str, Any] = {}
    if (precision := row["grad_precision"]) is not None:
        is_short = canonical_precision(precision) in SIXTEEN_BIT
        changes["grad_bytes"] = changes["grad_held_bytes"] = 2.0 if is_short else 4.0
    if row["moment_precision"] is not None or row["master_precision"] is not None:
        has_copy = canonical_precision(row["master_precision"] or "fp32") not in SIXTEEN_BIT
        # PyTorch's Adam keeps moments in the type of the weights that it updates (`torch/optim/adam.py: zeros_like`).
        moments = row["moment_precision"] or row["master_precision"]
        changes["optimizer_bytes"] = 4.0 * has_copy + 2.0 * _width(moments)
    if row["activation_precision"] is not None:
        changes["kept_product_bytes"] = _width(row["activation_precision"])
    if row["dispatch_precision"] is not None:
        # What experts take in, and its gradient: what they return is added up in 16 bit (2412.19437 section 3.3.3).
        changes["dispatch_bytes"] = (_width(row["dispatch_precision"]) + 2.0) / 2.0
    if row["nodes_per_token"]:
        changes["nodes_per_token"] = float(row["nodes_per_token"])
    if row["token_dispatcher"] is not None:
        changes["sends_once_per_domain"] = row["token_dispatcher"] in _ONCE_PER_DOMAIN
    if row["overlap_ep"] is not None:
        changes["hides_experts"] = row["overlap_ep"]
    if row["bf16_layers"]:
        changes["bf16_layers"] = float(row["bf16_layers"])
    if (modules := row["recompute_modules"]) is not None:
        changes["recomputed_modules"] = ",".join(modules_of(modules))
    return changes
