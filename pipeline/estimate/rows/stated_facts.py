"""Facts of a row that decide constants of its profile: attention kernel, what overlaps, precisions, buckets, dispatch.

A column that is absent or empty leaves the profile as it is, which is the framework's commonest choice.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles
from sweepscope.pipeline.reference.accelerators import EIGHT_BIT, SIXTEEN_BIT
from sweepscope.pipeline.reference.vocabulary import canonical_precision

OVERLAPS: Final = {"overlap_tp": "tp_hidden", "overlap_dp": "dp_hidden", "overlap_pp": "pp_hidden"}
"""Columns that say whether exchanges run beside compute, and the constant that each decides."""
_NOT_FUSED = ("false", "no", "none", "0", "torch", "megatron", "eager", "math")
_BYTES = 1e6
USUAL: Final = {"nemo": {"grad_precision": "bf16"}, "mlperf": {"grad_precision": "bf16"}}
"""What trainers do where a row does not say. NeMo's launcher synchronises gradients in the trainer's precision
(`launcher_scripts/conf/training/gpt3`: `grad_sync_dtype`), and so do the MLPerf submissions that are made with it."""


def with_usual(row: dict[str, Any], framework: str | None) -> tuple[dict[str, Any], list[str]]:
    """(`row` with what its framework usually does where it says nothing, notes on that)."""
    usual = {name: value for name, value in USUAL.get(framework or "", {}).items() if row[name] is None}
    words = [f"{name.replace('_', ' ')} {value}" for name, value in usual.items()]
    return {**row, **usual}, words


def modules_of(text: str) -> list[str]:
    """Modules that a row names, between commas or spaces, as Megatron's arguments do.

    >>> modules_of("layernorm mla_up_proj, moe_act")
    ['layernorm', 'mla_up_proj', 'moe_act']
    """
    return [word for word in re.split(r"[\s,;\[\]'\"]+", text.casefold()) if word]


def _width(precision: str) -> float:
    """Bytes of a number."""
    word = canonical_precision(precision)
    return 1.0 if word in EIGHT_BIT else 2.0 if word in SIXTEEN_BIT else 4.0


def with_facts(profile: Profile, row: dict[str, Any]) -> Profile:
    """`profile` as a row's `flash_attention`, OVERLAPS, `grad_precision` and `bucket_mb` have it.

    What is said to overlap hides as much as the profile has it, or as `default` where that hides nothing.
    """
    changes: dict[str, Any] = {}
    if (flash := row["flash_attention"]) is not None:
        changes["is_flash"] = flash.strip().casefold() not in _NOT_FUSED
    for column, constant in OVERLAPS.items():
        if (overlaps := row[column]) is not None:
            usual = getattr(profile, constant) or getattr(load_profiles()["default"], constant)
            changes[constant] = usual if overlaps else 0.0
    if row["overlap_dp"] is not None:
        changes["hides_gather"] = row["overlap_dp"]
    if (precision := row["grad_precision"]) is not None:
        is_short = canonical_precision(precision) in SIXTEEN_BIT
        changes["grad_bytes"] = changes["grad_held_bytes"] = 2.0 if is_short else 4.0
    if row["moment_precision"] is not None:
        changes["optimizer_bytes"] = 4.0 + 2.0 * _width(row["moment_precision"])
    if row["activation_precision"] is not None:
        changes["kept_product_bytes"] = _width(row["activation_precision"])
    if row["dispatch_precision"] is not None:
        # What experts take in, and its gradient: what they return is added up in 16 bit (2412.19437 section 3.3.3).
        changes["dispatch_bytes"] = (_width(row["dispatch_precision"]) + 2.0) / 2.0
    if row["nodes_per_token"]:
        changes["nodes_per_token"] = float(row["nodes_per_token"])
    if (modules := row["recompute_modules"]) is not None:
        changes["recomputed_modules"] = ",".join(modules_of(modules))
    if row["bucket_mb"]:
        changes["bucket_bytes"] = _BYTES * row["bucket_mb"]
    return replace(profile, **changes) if changes else profile
