"""Files of NCCL's Inspector plugin: one JSON object a line for each call that a rank has completed.

Format: NCCL plugins/profiler/inspector/inspector_json.cc (`header` with communicator and rank, `metadata` with host and
version, then `coll_perf` or, since version 4, `p2p_perf`; fields begin with `coll_` or `p2p_`; v4.0 has names of
communicators and kinds of clocks) and inspector.cc (`HOST-pidN.log`; bandwidths in 10^9 bytes per second). A process
that was killed leaves a cut line.
"""

from __future__ import annotations

import json
import re
from typing import Any

import polars as pl

_HEAD = re.compile(r'\s*\{\s*"header"\s*:\s*\{\s*"id"\s*:\s*"[^"]*"[^{}]*"n_ranks"\s*:[^{}]*\}\s*,\s*"metadata"\s*:')
_KINDS = (("coll_perf", "coll"), ("p2p_perf", "p2p"))
_UNNAMED = "unknown"
_GB, _US = 1e9, 1e-6
_KEY = ("host", "comm_hash", "comm_name", "rank", "nranks", "num_nodes", "op", "peer", "message_bytes", "timing_source")
_CALL = pl.Schema(
    {
        **dict.fromkeys(("host", "comm_hash", "comm_name", "op", "timing_source"), pl.String()),
        **dict.fromkeys(("rank", "nranks", "num_nodes", "peer", "message_bytes"), pl.Int64()),
        **dict.fromkeys(("time_s", "busbw"), pl.Float64()),
    }
)

Reject = tuple[int, str, str]
"""Number of a line, why it is no call, and its text."""


def is_inspector(head: str) -> bool:
    """Whether a text begins with a call as the plugin writes it."""
    return _HEAD.match(head) is not None


def read_inspector(text: str) -> tuple[pl.DataFrame, list[Reject]]:
    """Rows of `nccl_inspector` without what names the file, and the lines that are no calls."""
    calls, rejects = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                calls.append(_call(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                rejects.append((number, f"no call as NCCL's Inspector writes it: {error!r}"[:200], line))
    time, busbw = pl.col("time_s"), pl.col("busbw")
    found = (
        pl.DataFrame(calls, schema=_CALL)
        .group_by(_KEY, maintain_order=True)
        .agg(
            calls=pl.len().cast(pl.Int64),
            call_time_s=time.median(),
            fastest_call_s=time.min(),
            slowest_call_s=time.max(),
            call_busbw_bytes_per_s=busbw.median(),
        )
    )
    return found, rejects


def _call(record: dict[str, Any]) -> dict[str, object]:
    """One call in the columns of _CALL. Raises KeyError or ValueError for an object of another kind."""
    header, metadata = record["header"], record["metadata"]
    name, prefix = next((kind for kind in _KINDS if kind[0] in record), (None, ""))
    if name is None:
        raise KeyError("coll_perf")
    call, comm_name = record[name], header.get("comm_name")
    return {
        "host": metadata.get("hostname"),
        "comm_hash": header["id"],
        "comm_name": None if comm_name == _UNNAMED else comm_name,
        "rank": header["rank"],
        "nranks": header["n_ranks"],
        "num_nodes": header.get("nnodes"),
        "op": call[prefix],
        "peer": call.get(f"{prefix}_peer"),
        "message_bytes": call[f"{prefix}_msg_size_bytes"],
        "timing_source": call.get(f"{prefix}_timing_source"),
        "time_s": float(call[f"{prefix}_exec_time_us"]) * _US,
        "busbw": _bandwidth(call.get(f"{prefix}_busbw_gbs")),
    }


def _bandwidth(value: object) -> float | None:
    """In bytes per second; None for the text "nan", which the plugin writes where a call took no time it could see."""
    return float(value) * _GB if isinstance(value, (int, float)) else None
