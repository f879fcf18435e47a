"""Facts of a row that decide constants of its profile: attention kernel, what overlaps, gradients, buckets.

A column that is absent or empty leaves the profile as it is, which is the framework's commonest choice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles
from sweepscope.pipeline.reference.accelerators import SIXTEEN_BIT
from sweepscope.pipeline.reference.vocabulary import canonical_precision

OVERLAPS: Final = {"overlap_tp": "tp_hidden", "overlap_dp": "dp_hidden", "overlap_pp": "pp_hidden"}
"""Columns that say whether exchanges run beside compute, and the constant that each decides."""
_NOT_FUSED = ("false", "no", "none", "0", "torch", "megatron", "eager", "math")
_BYTES = 1e6


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
    if row["bucket_mb"]:
        changes["bucket_bytes"] = _BYTES * row["bucket_mb"]
    return replace(profile, **changes) if changes else profile
