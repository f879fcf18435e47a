"""What was alive at the active peak, in groups of blocks with one use, source line and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sweepscope.pipeline.memory.analysis.allocation_kinds import Row, Use, Words, uses_of
from sweepscope.pipeline.memory.analysis.phases import Phases
from sweepscope.pipeline.memory.analysis.replay import Lives, Replay
from sweepscope.pipeline.memory.snapshot.snapshot import Device
from sweepscope.pipeline.memory.snapshot.trace import Ints

MAX_GROUPS = 1_000
MAX_USES = 20_000
"""Kinds of blocks that are put into words; only a file made for it has more."""
BEFORE_RECORD = "allocated before recording"
AS_GRADIENTS = "parameters", f"{BEFORE_RECORD}, as many and as large as the gradients"
AS_STATES = "optimizer_state", f"{BEFORE_RECORD}, more of the size of each gradient"
MIN_MATCHED_BYTES = 1 << 20
"""Below, sizes are the same by chance."""


def gradient_sizes(kinds: list[Use], kind: Ints, words: Words, lives: Lives) -> dict[int, int]:
    """Number of gradients by size when most bytes of them were alive, which is seldom at the peak.

    `kinds` and `kind` are `uses_of` of all lives.
    """
    is_gradient = np.array([words.row(use)["category"] == "gradients" for use in kinds[:MAX_USES]], np.bool_)
    rows = np.flatnonzero(is_gradient[np.minimum(kind, len(is_gradient) - 1)] & (kind < MAX_USES))
    if not len(rows):
        return {}
    at = np.concatenate([lives.begin[rows] + 1, lives.end[rows] + 1])  # alive after begin + 1 to end events
    change = np.concatenate([lives.size[rows], -lives.size[rows]])
    points, place = np.unique(at, return_inverse=True)
    level = np.zeros(len(points), np.int64)
    np.add.at(level, place, change)
    most = points[int(np.cumsum(level).argmax())]
    alive = rows[(lives.begin[rows] < most) & (lives.end[rows] >= most)]
    return dict(zip(*(found.tolist() for found in np.unique(lives.size[alive], return_counts=True)), strict=True))


def peak_rows(
    words: Words, device: Device, replayed: Replay, phases: Phases, gradients: Mapping[int, int]
) -> list[Row]:
    """Rows of `memory_at_peak`, the largest first; their bytes add up to the active peak. `gradients`: number by size.

    Blocks of one category, rule, source line and size are one row. Beyond MAX_GROUPS, sizes and lines of one category
    are put together. Bytes of the level that no live block explains are a row of their own.
    """
    peak = int(replayed.active.argmax())
    groups: dict[tuple[Any, ...], Row] = {}
    total = 0
    uses, use_of = uses_of(device, replayed.lives, phases, replayed.lives.at(peak), by_size=True)
    for use, blocks in zip(uses, np.bincount(use_of, minlength=len(uses)).tolist(), strict=True):
        row = words.row(use)
        group = groups.setdefault(tuple(row.values())[:-1], {**row, "blocks": 0, "bytes": 0})
        group["blocks"] += blocks
        group["bytes"] += blocks * use.block_bytes
        total += blocks * use.block_bytes
    told = [part for row in groups.values() for part in _by_size(row, gradients)]
    rows = _limited(sorted(told, key=lambda row: -row["bytes"]))
    if (rest := int(replayed.active[peak]) - total) > 0:
        rows.append(_together("unattributed", "the level and the live blocks differ", blocks=0, size=rest))
    return [{"device": device.number, "group_no": number, **row} for number, row in enumerate(rows, start=1)]


def _by_size(row: Row, gradients: Mapping[int, int]) -> list[Row]:
    """Blocks from before the record that nothing explains but their sizes, as parameters and optimizer states.

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
        rest = {"blocks": row["blocks"] - count, "bytes": row["bytes"] - size}
        parts.append({**row, "category": category, "rule": rule, **rest})
    return parts


def _limited(rows: list[Row]) -> list[Row]:
    if len(rows) <= MAX_GROUPS:
        return rows
    rest: dict[str, Row] = {}
    for row in rows[MAX_GROUPS:]:
        told = rest.setdefault(row["category"], _together(row["category"], "smaller groups put together"))
        told["blocks"] += row["blocks"]
        told["bytes"] += row["bytes"]
    return rows[:MAX_GROUPS] + sorted(rest.values(), key=lambda row: -row["bytes"])


def _together(category: str, rule: str, *, blocks: int = 0, size: int = 0) -> Row:
    nothing = dict.fromkeys(("mem_origin", "frame", "label", "block_bytes", "stack"))
    return {"category": category, "rule": rule, **nothing, "blocks": blocks, "bytes": size}
