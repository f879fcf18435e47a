"""Blocks alive at the active peak, grouped by category, source line and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sweepscope.pipeline.memory.analysis.allocation_kinds import Classified, Descriptions, Row, kinds_of
from sweepscope.pipeline.memory.analysis.lifetimes import Lifetimes
from sweepscope.pipeline.memory.analysis.phases import Phases
from sweepscope.pipeline.memory.analysis.replay import Replay
from sweepscope.pipeline.memory.snapshot.snapshot import Device

MAX_GROUPS = 1_000
MAX_KINDS = 20_000
"""Kinds of allocations that are described; only a file made for it has more."""
BEFORE_RECORD = "allocated before recording"
AS_GRADIENTS = "parameters", f"{BEFORE_RECORD}, as many and as large as the gradients"
AS_STATES = "optimizer_state", f"{BEFORE_RECORD}, more of the size of each gradient"
MIN_MATCHED_BYTES = 1 << 20
"""Below, sizes are the same by chance."""


def gradient_sizes(classified: Classified, descriptions: Descriptions, lifetimes: Lifetimes) -> dict[int, int]:
    """Number of gradients by size at the moment with most gradient bytes, which is seldom the peak.

    Args:
        classified: the kinds of all lifetimes.
        descriptions: of the snapshot.
        lifetimes: blocks of one device.
    """
    kinds, kind_of = classified.kinds[:MAX_KINDS], classified.kind_of
    is_gradient = np.array([descriptions.row(kind)["category"] == "gradients" for kind in kinds], np.bool_)
    rows = np.flatnonzero(is_gradient[np.minimum(kind_of, len(is_gradient) - 1)] & (kind_of < MAX_KINDS))
    if not len(rows):
        return {}
    at = np.concatenate([lifetimes.begin[rows] + 1, lifetimes.end[rows] + 1])  # alive after begin + 1 to end events
    change = np.concatenate([lifetimes.size[rows], -lifetimes.size[rows]])
    points, index = np.unique(at, return_inverse=True)
    level = np.zeros(len(points), np.int64)
    np.add.at(level, index, change)
    most = points[int(np.cumsum(level).argmax())]
    alive = rows[(lifetimes.begin[rows] < most) & (lifetimes.end[rows] >= most)]
    return dict(zip(*(found.tolist() for found in np.unique(lifetimes.size[alive], return_counts=True)), strict=True))


def peak_rows(
    descriptions: Descriptions, device: Device, replayed: Replay, phases: Phases, gradients: Mapping[int, int]
) -> list[Row]:
    """Rows of `memory_at_peak`, the largest first; their bytes add up to the active peak.

    Blocks of one category, rule, source line and size are one row. Beyond MAX_GROUPS, the groups of one category are
    merged. Bytes of the level that no live block explains are a separate row.

    Args:
        descriptions: of the snapshot.
        device: the device.
        replayed: its replay.
        phases: its annotations.
        gradients: number of gradients by size (`gradient_sizes`).
    """
    peak = int(replayed.active.argmax())
    groups: dict[tuple[Any, ...], Row] = {}
    total = 0
    live = kinds_of(device, replayed.lifetimes, phases, replayed.lifetimes.at(peak), by_size=True)
    for kind, blocks in zip(live.kinds, np.bincount(live.kind_of, minlength=len(live.kinds)).tolist(), strict=True):
        row = descriptions.row(kind)
        group = groups.setdefault(tuple(row.values())[:-1], {**row, "blocks": 0, "bytes": 0})
        group["blocks"] += blocks
        group["bytes"] += blocks * kind.block_bytes
        total += blocks * kind.block_bytes
    parts = [part for row in groups.values() for part in _by_size(row, gradients)]
    rows = _limited(sorted(parts, key=lambda row: -row["bytes"]))
    if (unexplained := int(replayed.active[peak]) - total) > 0:
        rows.append(_merged("unattributed", "the level and the live blocks differ", size=unexplained))
    return [{"device": device.number, "group_no": number, **row} for number, row in enumerate(rows, start=1)]


def _by_size(row: Row, gradients: Mapping[int, int]) -> list[Row]:
    """Parts of a group from before the record: parameters and optimizer states, told apart by size where possible.

    A gradient is as large as its parameter, and an optimizer's state in the same precision as both. So of k times as
    many blocks as there are gradients of the size, one share is parameters and the others are states.
    """
    count = gradients.get(row["block_bytes"] or 0, 0)
    is_open = row["category"] == "unknown" and row["rule"].startswith(BEFORE_RECORD)
    if not (is_open and count and row["block_bytes"] >= MIN_MATCHED_BYTES and row["blocks"] % count == 0):
        return [row]
    size, copies = count * row["block_bytes"], row["blocks"] // count
    category, rule = AS_GRADIENTS
    parts = [{**row, "category": category, "rule": rule, "blocks": count, "bytes": size}]
    if copies > 1:
        category, rule = AS_STATES
        others = {"blocks": row["blocks"] - count, "bytes": row["bytes"] - size}
        parts.append({**row, "category": category, "rule": rule, **others})
    return parts


def _limited(rows: list[Row]) -> list[Row]:
    if len(rows) <= MAX_GROUPS:
        return rows
    merged: dict[str, Row] = {}
    for row in rows[MAX_GROUPS:]:
        group = merged.setdefault(row["category"], _merged(row["category"], "smaller groups put together"))
        group["blocks"] += row["blocks"]
        group["bytes"] += row["bytes"]
    return rows[:MAX_GROUPS] + sorted(merged.values(), key=lambda row: -row["bytes"])


def _merged(category: str, rule: str, *, size: int = 0) -> Row:
    unknown = dict.fromkeys(("mem_origin", "frame", "label", "block_bytes", "stack"))
    return {"category": category, "rule": rule, **unknown, "blocks": 0, "bytes": size}
