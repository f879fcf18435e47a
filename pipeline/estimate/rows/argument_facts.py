"""What a run's arguments state of the facts that decide constants of an estimate (`stated_facts.FACTS`).

Sources of the names: Megatron-LM megatron/training/arguments.py and megatron/core/distributed/
distributed_data_parallel_config.py; DeepSpeed docs/config-json; transformers training_args.py; accelerate
utils/dataclasses.py (TorchDynamoPlugin); torchtitan config/job_config.py; nanotron config/parallelism_config.py;
axolotl integrations/liger/args.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import polars as pl

from sweepscope.pipeline.estimate.rows.kernels import KERNELS
from sweepscope.pipeline.estimate.rows.stated_facts import DISPATCHERS, SCALINGS

FACTS_OF_ARGUMENTS: Final = pl.Schema(
    {
        "run_id": pl.String(),
        "flash_attention": pl.String(),
        "attention_kernel": pl.String(),
        "fused_accumulation": pl.Boolean(),
        "overlap_tp": pl.Boolean(),
        "overlap_dp": pl.Boolean(),
        "overlap_pp": pl.Boolean(),
        "overlap_ep": pl.Boolean(),
        "grad_precision": pl.String(),
        "moment_precision": pl.String(),
        "bucket_mb": pl.Float64(),
        "recompute_modules": pl.String(),
        "bf16_layers": pl.Float64(),
        "token_dispatcher": pl.String(),
        "execution": pl.String(),
        "fp8_scaling": pl.String(),
        **dict.fromkeys(KERNELS, pl.String()),
    }
)
"""One row per run of which something is stated; columns of `stated_facts.FACTS`, NULL where it is not."""

_Stated = Mapping[str, str]
_DTYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16"} | {
    "fp32": "fp32",
    "float32": "fp32",
    "float": "fp32",
    "fp8": "fp8",
    "uint8": "fp8",
}
_BYTES_OF = {"fp32": 4, "bf16": 2, "fp16": 2}


def _switch(stated: _Stated, *names: str) -> bool | None:
    """The first of these switches that is stated; None where none is."""
    words = (stated.get(name, "").casefold() for name in names)
    return next(
        (word in ("true", "1", "yes") for word in words if word in ("true", "false", "1", "0", "yes", "no")), None
    )


def _dtype(stated: _Stated, *names: str) -> str | None:
    """The first of these numeric formats that is stated, as `stated_facts.PRECISIONS` has it."""
    words = (stated.get(name, "").casefold().rpartition(".")[2].strip("'<>") for name in names)
    return next((_DTYPES[word] for word in words if word in _DTYPES), None)


def _grad_precision(stated: _Stated) -> str | None:
    if (in_fp32 := _switch(stated, "accumulate_allreduce_grads_in_fp32", "grad_reduce_in_fp32")) is not None:
        return "fp32" if in_fp32 else _dtype(stated, "params_dtype")
    if _switch(stated, "grad_reduce_in_bf16"):
        return "bf16"
    if _switch(stated, "accumulate_grad_in_fp32"):
        return "fp32"
    return _dtype(stated, "mixed_precision_reduce", "communication_data_type", "grad_sync_dtype", "grad_accum_dtype")


def _bucket_mb(stated: _Stated) -> float | None:
    """Megabytes of a bucket of gradients: stated as such, or by its elements in the gradients' format."""
    if (megabytes := _number(stated.get("ddp_bucket_cap_mb"))) is not None:
        return megabytes
    elements = next((n for name in _BUCKETS if (n := _number(stated.get(name)))), None)
    return elements * _BYTES_OF.get(_grad_precision(stated) or "", 2) / 1e6 if elements else None


_BUCKETS = ("ddp_bucket_size", "reduce_bucket_size", "zero_reduce_bucket_size")


def _number(text: str | None) -> float | None:
    """A positive number; None for any other text."""
    try:
        value = float((text or "").replace(",", "").replace("_", ""))
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


_KERNELS = (
    "flash_attention_3",
    "flash_attention_2",
    "sdpa",
    "eager",
    "flash",
    "fused",
    "unfused",
    "cudnn",
    "te",
    "math",
)


_ATTENTION = (
    *("attn_implementation", "_attn_implementation", "attention_backend", "attn_impl"),
    *("attention_kernel", "attention_impl", "attention_implementation", "attn_kernel", "attention", "attn"),
)
"""Names of frameworks' arguments, and those that scripts of one's own have."""


def _attention(stated: _Stated) -> str | None:
    """The kernel that is asked for, in the framework's word; None where it chooses by itself."""
    words = (stated.get(name, "").casefold().rpartition(".")[2].strip("'<>") for name in _ATTENTION)
    kernel = next((word for word in words if word in _KERNELS), None)
    # Megatron's and Transformer Engine's unfused attention has a softmax of one kernel, unless that is switched off.
    return "eager" if kernel == "unfused" and _switch(stated, "masked_softmax_fusion") is False else kernel


def _is_flash(stated: _Stated) -> str | None:
    """Whether attention keeps no scores: "true", "false", or None where nothing states it."""
    if kernel := _attention(stated):
        return "false" if kernel in ("eager", "unfused", "math") else "true"
    asked = _switch(stated, "use_flash_attn", "use_flash_attn_v2", "use_flash_attention", "flash_attn")
    return None if asked is None else str(asked).lower()


def _modules(stated: _Stated) -> str | None:
    text = stated.get("recompute_modules", "")
    granularity = stated.get("recompute_granularity", "selective").casefold()
    words = re.findall(r"[a-z_]+", text.casefold())
    return ",".join(words) if words and words != ["none"] and granularity == "selective" else None


def _bf16_layers(stated: _Stated) -> float | None:
    """Layers at both ends whose products stay in 16 bit beside FP8 or FP4; Megatron's own default is one at each."""
    if (keeps := _switch(stated, "first_last_layers_bf16")) is not True:
        return None if keeps is None else 0.0
    return sum(float(stated.get(name) or 1) for name in _ENDS)


def _dispatcher(stated: _Stated) -> str | None:
    """How tokens go to their experts, word of `stated_facts.DISPATCHERS`; DeepEP is Megatron's flexible one's."""
    word = stated.get("moe_token_dispatcher_type", "").casefold()
    return word if word in DISPATCHERS else None


_ENDS = ("num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16")
_COMPILES = ("torch_compile", "compile", "compile_model", "use_torch_compile", "torch_compile_model")
_GRAPHS = ("enable_cuda_graph", "external_cuda_graph", "use_cuda_graphs", "cuda_graphs")
_MODES_WITH_GRAPHS = ("reduce-overhead", "max-autotune")
"""Modes of `torch.compile` that replay CUDA graphs (torch/_inductor/__init__.py: `list_mode_options`)."""


def _execution(stated: _Stated) -> str | None:
    """Word of `kernels.EXECUTIONS`; "eager" where compiling, or capturing, is stated to be off."""
    impl, scope = (stated.get(name, "").casefold() for name in ("cuda_graph_impl", "cuda_graph_scope"))
    said = [_switch(stated, name) for name in _GRAPHS]
    captures = True in said or (False if False in said else None)
    if "inference" not in scope and (captures or impl in ("local", "transformer_engine", "full_iteration")):
        return "graphs"
    compiles = _switch(stated, *_COMPILES)
    if compiles is None and (word := next((stated[name].casefold() for name in _COMPILES if name in stated), "")):
        compiles = word not in ("none", "off")  # what is compiled, or by which backend: `compile=layer`
    if (backend := stated.get("dynamo_backend", "").casefold().rpartition(".")[2]) and compiles is None:
        compiles = backend not in ("no", "none")
    mode = stated.get("torch_compile_mode", stated.get("compile_mode", "")).casefold()
    if compiles and not _compiles_layers(stated):
        return "eager"
    if compiles:
        return "graphs" if mode in _MODES_WITH_GRAPHS else "compiled"
    is_off = compiles is False or captures is False or impl == "none"
    return "eager" if is_off else None


def _compiles_layers(stated: _Stated) -> bool:
    """Whether what is compiled has the layers: torchtitan's `compile.components` may name the loss alone."""
    return "model" in stated.get("compile_components", "model").casefold()


_FUSED_BY: Final = {
    "norm_kernel": ("use_liger_kernel", "liger_rms_norm"),
    "rotary_kernel": ("use_liger_kernel", "liger_rope", "apply_rope_fusion", "rope_fusion"),
    "activation_kernel": (
        *("use_liger_kernel", "liger_glu_activation", "bias_swiglu_fusion", "bias_activation_fusion"),
        "bias_gelu_fusion",
    ),
    "loss_kernel": (
        *("use_liger_kernel", "liger_cross_entropy", "liger_fused_linear_cross_entropy"),
        *("cross_entropy_loss_fusion", "fused_crossentropy"),
    ),
}
"""Switches that fuse an operator."""


def _kernel(column: str) -> Callable[[_Stated], str | None]:
    """Reader of the form of an operator: "fused" where one of its switches is on, "eager" where one is off."""

    def read(stated: _Stated) -> str | None:
        if column == "loss_kernel" and _switch(stated, *_COMPILES) and not _compiles_layers(stated):
            return "compiled"
        said = [_switch(stated, name) for name in _FUSED_BY[column]]
        return "fused" if True in said else "eager" if False in said[1:] else None

    return read


def _scaling(stated: _Stated) -> str | None:
    """How far one scale of products in FP8 reaches, as torchao's recipes ("rowwise_with_gw_hp" keeps one product of a
    layer's three in 16 bit) and Transformer Engine's name it; None where the recipe is another or none."""
    words = (stated.get(name, "").casefold().partition("_")[0] for name in _RECIPES)
    return next((word for word in words if word in SCALINGS), None)


_RECIPES = ("recipe_name", "fp8_recipe")
_BESIDE_BATCHES = ("overlap_moe_expert_parallel_comm", "moe_a2a_overlap")
_READERS: dict[str, Callable[[_Stated], Any]] = {
    "flash_attention": _is_flash,
    "attention_kernel": lambda stated: (
        "cudnn" if _attention(stated) in ("fused", "cudnn", "te") else _attention(stated)
    ),
    "fused_accumulation": lambda stated: _switch(stated, "gradient_accumulation_fusion"),
    "overlap_tp": lambda stated: _switch(
        stated, "tp_comm_overlap", "ub_tp_comm_overlap", "tp_linear_async_communication", "enable_async_tensor_parallel"
    ),
    "overlap_dp": lambda stated: _switch(stated, "overlap_grad_reduce", "overlap_comm"),
    "overlap_pp": lambda stated: _switch(stated, "overlap_p2p_communication", "overlap_p2p_comm"),
    "overlap_ep": lambda stated: _switch(stated, *_BESIDE_BATCHES),
    "grad_precision": _grad_precision,
    "moment_precision": lambda stated: _dtype(stated, "exp_avg_dtype"),
    "bucket_mb": _bucket_mb,
    "recompute_modules": _modules,
    "bf16_layers": _bf16_layers,
    "token_dispatcher": _dispatcher,
    "execution": _execution,
    "fp8_scaling": _scaling,
    **{column: _kernel(column) for column in KERNELS},
}
_INSIDE = re.compile(r"\b([a-z_]+)=([\w.,]+)")
_WRITTEN_OUT = ("zero_config",)
"""Arguments whose value is an object in one text: DeepSpeed's `stage=1 overlap_comm=True`."""


def facts_of_arguments(arguments: pl.DataFrame) -> pl.DataFrame:
    """FACTS_OF_ARGUMENTS rows of rows of `arguments` (`run_id`, `name`, `value`)."""
    # torchtitan's and DeepSpeed's switch of compilation has no name of its own: `compile.enable`.
    name = pl.col("name").str.replace(r"(^|\.)compile\.enabled?$", "${1}compile")
    name = name.str.replace(r"(^|\.)compile\.components$", "${1}compile_components")
    last = arguments.select("run_id", "value", name=name.str.split(".").list.last())
    wanted = last.filter(pl.col("name").is_in(list(_NAMES)))
    rows = []
    for (run_id,), part in wanted.group_by("run_id", maintain_order=True):
        stated: dict[str, str] = {}
        for name, value in part.select("name", "value").iter_rows():
            if name in _WRITTEN_OUT:
                stated |= {inner: text for inner, text in _INSIDE.findall(value or "") if inner not in stated}
            elif value is not None:
                stated.setdefault(name, value)
        rows.append({"run_id": run_id, **{fact: read(stated) for fact, read in _READERS.items()}})
    return pl.DataFrame(rows, schema=FACTS_OF_ARGUMENTS)


_NAMES: Final = frozenset(
    (
        *("accumulate_allreduce_grads_in_fp32", "grad_reduce_in_fp32", "grad_reduce_in_bf16", "params_dtype"),
        *("accumulate_grad_in_fp32", "mixed_precision_reduce", "communication_data_type", "grad_sync_dtype"),
        *("grad_accum_dtype", "ddp_bucket_cap_mb", *_BUCKETS, *_ATTENTION, "masked_softmax_fusion"),
        *("use_flash_attn", "use_flash_attn_v2", "use_flash_attention", "flash_attn"),
        *("recompute_modules", "recompute_granularity", "gradient_accumulation_fusion", "tp_comm_overlap"),
        *("ub_tp_comm_overlap", "tp_linear_async_communication", "overlap_grad_reduce", "overlap_comm"),
        *("overlap_p2p_communication", "overlap_p2p_comm", "exp_avg_dtype", *_WRITTEN_OUT),
        *("moe_token_dispatcher_type", *_BESIDE_BATCHES, "first_last_layers_bf16", *_ENDS),
        *("enable_async_tensor_parallel", *_RECIPES, *_COMPILES, *_GRAPHS, "cuda_graph_impl", "cuda_graph_scope"),
        *(
            "dynamo_backend",
            "torch_compile_mode",
            "compile_mode",
            "compile_components",
            *(name for names in _FUSED_BY.values() for name in names),
        ),
    )
)
