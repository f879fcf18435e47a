"""Free text of configurations and tables to the words of `schemas.vocab`. Unknown text is never guessed at."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import polars as pl

from sweepscope.schemas import vocab

_PRECISIONS: dict[str, str] = (
    {word: word for word in vocab.PRECISION}
    | {"bfloat16": "bf16", "torch.bfloat16": "bf16", "amp_bf16": "bf16", "bf16-mixed": "bf16"}
    | {"float16": "fp16", "torch.float16": "fp16", "half": "fp16", "16-mixed": "fp16"}
    | {"float32": "fp32", "torch.float32": "fp32", "tf32": "fp32", "32-true": "fp32", "float64": "fp64"}
    | {"float8": "fp8", "amp_fp8": "fp8", "fp8 mixed": "fp8", "fp8-mixed": "fp8"}
    | {"bf16+float8": "fp8", "bf16+float8 rowwise": "fp8", "bf16+float8 tensorwise": "fp8"}
    | {"fp8-cs": "fp8", "fp8_cs": "fp8", "fp8-ds": "fp8", "fp8_ds": "fp8", "fp8-mx": "mxfp8", "fp8_mx": "mxfp8"}
    | {"nvfp4": "fp4", "mxfp4": "fp4"}
)

_RECOMPUTE: dict[str, str] = {**{word: word for word in vocab.RECOMPUTE}, "no": "none"}

_ZERO_STAGES: tuple[tuple[str, int], ...] = (
    (r"^(zero|z)[-_ ]?([0-3])\b", -1),  # -1: the digit itself
    (r"^(none|dp|ddp)$", 0),
    (r"shard_grad_op|params kept after forward", 2),  # parameters stay gathered: ZeRO-2's memory and traffic
    (r"^(2d )?fsdp|^hsdp|full_shard", 3),
)


FRAMEWORK_BY_SOURCE: dict[str, str] = (
    {"ultrascale_playbook": "nanotron", "llm_foundry": "composer", "torchtitan": "torchtitan"}
    | {"simumax": "megatron", "korthikanti": "megatron", "narayanan": "megatron", "bigscience": "megatron-deepspeed"}
    | {"megatron_bridge": "megatron", "nemo": "nemo", "dgxc": "nemo"}
    | {"mlperf": "mlperf", "internevo": "internevo", "fms_fsdp": "fms-fsdp", "maxtext": "maxtext"}
    | {"mtnlg": "megatron-deepspeed", "bloom": "megatron-deepspeed", "mpt7b": "composer", "smollm3": "nanotron"}
)
"""Start of a `source_id` to the framework that its publication names."""


def canonical_precision(text: str) -> str:
    """Word of vocab.PRECISION; 'unclear' for text that names no precision we know, so that no peak is assumed for it.

    >>> canonical_precision("amp_bf16"), canonical_precision("fp8 or nvfp4 (see config)")
    ('bf16', 'unclear')
    """
    return _PRECISIONS.get(text.strip().casefold(), "unclear")


def canonical_recompute(text: str) -> str | None:
    """Word of vocab.RECOMPUTE."""
    return _RECOMPUTE.get(text.strip().casefold())


def canonical_zero_stage(text: str) -> int | None:
    """ZeRO stage 0-3: FSDP full shard is 3, sharded gradients only is 2, plain data parallelism is 0.

    >>> [canonical_zero_stage(t) for t in ("zero1 within groups of 4", "FSDP FULL_SHARD", "ZeRO (stage not stated)")]
    [1, 3, None]
    """
    text = text.strip().casefold()
    for pattern, stage in _ZERO_STAGES:
        if match := re.search(pattern, text):
            return int(match[2]) if stage < 0 else stage
    return None


def canonical_bool(text: str) -> bool | None:
    """True or False as configurations spell it."""
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(text.strip().casefold())


def framework_of(source_id: str) -> str | None:
    """The framework that a publication names, by the start of its `source_id`; None for another source.

    >>> framework_of("llm_foundry_bench")
    'composer'
    """
    return next((word for prefix, word in FRAMEWORK_BY_SOURCE.items() if source_id.startswith(prefix)), None)


_FRAMEWORK_NAMES: Final = {
    **{name.replace("_", "-"): name for name in vocab.FRAMEWORK},
    **{"pax": "paxml", "praxis": "paxml", "mcore": "megatron", "neox": "gpt-neox"},
    **{"llm-foundry": "composer", "mosaicml": "composer", "pytorch-lightning": "lightning"},
    **{"transformers": "hf-trainer", "huggingface": "hf-trainer", "hugging-face": "hf-trainer", "trl": "hf-trainer"},
}
"""What tables call frameworks, and their words of vocab.FRAMEWORK."""
_OTHER_FRAMEWORKS: Final = ("nemo-automodel", "nemo-rl")
"""Names that begin with a framework's and are another's: NeMo AutoModel trains on PyTorch's FSDP."""


def canonical_framework(text: str) -> str | None:
    """Word of vocab.FRAMEWORK that a framework's name begins with, the longest; None for a name that none is.

    >>> [canonical_framework(text) for text in ("Megatron-LM", "Megatron + DeepSpeed 0.9", "Pax", "NeMo AutoModel")]
    ['megatron', 'megatron-deepspeed', 'paxml', None]
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", text.strip().casefold())

    def begins(name: str) -> bool:
        return plain.startswith(name) and not plain[len(name) : len(name) + 1].isalnum()

    if any(begins(name) for name in _OTHER_FRAMEWORKS):
        return None
    found = max((name for name in _FRAMEWORK_NAMES if begins(name)), key=len, default=None)
    return _FRAMEWORK_NAMES[found] if found else None


_NEMO_CONTAINER: Final = re.compile(r"nemo\D*(\d\d)\.(\d\d)\b")
_FIRST_WITH_BRIDGE: Final = (25, 9)
"""NeMo's first container whose recipes are Megatron-Bridge's, on Megatron-LM and its defaults: gradients in fp32
(NVIDIA-NeMo/Megatron-Bridge, `recipes/*/*.py`: `grad_reduce_in_fp32`)."""


def framework_of_version(text: str) -> str | None:
    """The framework that a version begins with (NeMo's runs are Megatron-LM's by their arguments); None for a number.

    >>> framework_of_version("NeMo 24.09"), framework_of_version("NeMo 25.09"), framework_of_version("0.2.0rc1")
    ('nemo', 'megatron', None)
    """
    folded = text.strip().casefold()
    container = _NEMO_CONTAINER.match(folded)
    if container and (int(container[1]), int(container[2])) >= _FIRST_WITH_BRIDGE:
        return "megatron"
    word = re.match(r"[a-z]+(?:-[a-z]+)*", folded)
    return word[0] if word and word[0] in vocab.FRAMEWORK else None


def map_words(column: pl.Series, lookup: Callable[[str], object], dtype: type[pl.DataType]) -> pl.Series:
    """`column` of text through a lookup, one call per distinct text; text that the lookup does not know is NULL."""
    words = {text: lookup(text) for text in column.drop_nulls().unique()}
    if not words:
        return pl.Series(column.name, [None] * len(column), dtype=dtype)
    return column.replace_strict(words, default=None, return_dtype=dtype)
