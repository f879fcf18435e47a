"""Why a row cannot be estimated, as text: what it does not state, contradicts, or states in unknown words."""

from __future__ import annotations

import re
from typing import Any

from sweepscope.pipeline.estimate.rows.read_rows import HYBRID


def is_processor(accelerator: str) -> bool:
    """Whether what a row names as its accelerator is the host's processor."""
    return bool(re.search(r"(?i)\b(cpu|xeon|epyc)\b", accelerator))


def no_cluster(accelerator: str) -> str:
    """Why an accelerator without a cluster is not modelled."""
    if is_processor(accelerator):
        return f"{accelerator} is no accelerator: only GPUs and TPUs are modelled"
    return f"unknown accelerator: {accelerator} (state its dense peak in 16 bit, in a column peak_tflops_bf16)"


def not_understood(row: dict[str, Any]) -> str:
    """The cells of a row that hold no such number as they should, or an empty text."""
    return f"not understood: {row['misread']}" if row["misread"] else ""


def missing(row: dict[str, Any]) -> str:
    """Why a row has no layout, or an empty text."""
    if wrong := not_understood(row):
        return wrong
    unknown = [name for name in ("num_gpus", "dp", "tp", "pp", "mbs", "gas") if not row[name]]
    if unknown:
        remedy = "state them, or the global batch" if set(unknown) <= {"mbs", "gas"} else "state them, or ask --ceiling"
        return f"layout incomplete: {', '.join(unknown)} not stated and not derivable ({remedy})"
    product = row["dp"] * row["tp"] * row["pp"] * (row["cp"] or 1)
    if product != row["num_gpus"]:
        outside = row["ep"] and product * row["ep"] == row["num_gpus"]
        if not outside:
            needs = f"layout needs {product} accelerators, the row has {row['num_gpus']}"
            return f"{needs} (correct num_gpus or a degree; leave dp out to have it derived)"
    if row["stated_recompute"] is not None and row["recompute"] is None:
        return f"recomputation not understood: {row['stated_recompute']}"
    return _missing_group(row)


def _missing_group(row: dict[str, Any]) -> str:
    """Why the group that shares one copy of the sharded states is unknown, or an empty text."""
    if row["dp_replicate"] == 0:
        return "dp is no multiple of the ranks that share one copy of the sharded states"
    if row["dp_replicate"] is None and is_hybrid(row):
        return "sharded within groups, but neither dp_replicate, dp_shard nor gpus_per_node gives their size"
    return ""


def is_hybrid(row: dict[str, Any]) -> bool:
    """Whether the row names sharding within groups without their size."""
    sharding = row["stated_sharding"] or ""
    return bool(re.search(HYBRID, sharding)) and not re.search(r"\d", sharding)
