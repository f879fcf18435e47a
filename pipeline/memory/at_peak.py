"""What was alive at the active peak, in groups of blocks with one use, source line and size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.memory.attribution import NO_STACK, Life, Stack, categorise
from pipeline.memory.phases import Phases
from pipeline.memory.replay import FROM_FREE, RECORDED, Lives, Replay
from pipeline.memory.snapshot import Device, Snapshot
from pipeline.memory.stacks import in_words, shown, source_line

MAX_GROUPS = 1_000
MIN_MATCHED_BYTES = 1 << 20
"""Below, sizes are the same by chance."""
ORIGINS = ("recorded", "from_block", "from_free", "no_record")

Row = dict[str, Any]


@dataclass(frozen=True)
class _Key:
    """What blocks must share to be told about together."""

    made: int
    freed: int
    block_bytes: int
    label: int
    origin: int
    was_freed: bool
    in_optimizer: bool
    outlives_optimizer: bool
    is_compute_stream: bool


def peak_rows(snapshot: Snapshot, device: Device, replayed: Replay, phases: Phases) -> list[Row]:
    """Rows of `memory_at_peak`, the largest first; their bytes add up to the active peak.

    Blocks of one category, rule, source line and size are one row. Beyond MAX_GROUPS, sizes and lines of one category
    are put together. Bytes of the level that no live block explains are a row of their own.
    """
    peak = int(replayed.active.argmax())
    words = _Words(snapshot)
    groups: dict[tuple[Any, ...], Row] = {}
    total = 0
    for key, blocks in _keys(device, replayed.lives, phases, peak).items():
        row = words.row(key)
        group = groups.setdefault(tuple(row.values())[:-1], {**row, "blocks": 0, "bytes": 0})
        group["blocks"] += blocks
        group["bytes"] += blocks * key.block_bytes
        total += blocks * key.block_bytes
    told = [part for row in groups.values() for part in _by_size(row, _gradients(groups.values()))]
    rows = _limited(sorted(told, key=lambda row: -row["bytes"]))
    if (rest := int(replayed.active[peak]) - total) > 0:
        rows.append(_together("unattributed", "the level and the live blocks differ", blocks=0, size=rest))
    return [{"device": device.number, "group_no": number, **row} for number, row in enumerate(rows, start=1)]


def _gradients(rows: Iterable[Row]) -> dict[int, int]:
    """Number of gradients by size."""
    counts: dict[int, int] = {}
    for row in rows:
        if row["category"] == "gradients":
            counts[row["block_bytes"]] = counts.get(row["block_bytes"], 0) + row["blocks"]
    return counts


def _by_size(row: Row, gradients: Mapping[int, int]) -> list[Row]:
    """Blocks from before the record that nothing explains but their sizes, as parameters and optimizer states.

    A gradient is as large as its parameter, and an optimizer's state in the same precision as both. So of k times as
    many blocks as there are gradients of the size, one share is parameters and the others are states.
    """
    count = gradients.get(row["block_bytes"] or 0, 0)
    is_open = row["category"] == "unknown" and row["rule"].startswith("allocated before recording")
    if not (is_open and count and row["block_bytes"] >= MIN_MATCHED_BYTES and row["blocks"] % count == 0):
        return [row]
    size, copies = count * row["block_bytes"], row["blocks"] // count
    as_many = "allocated before recording, as many and as large as the gradients"
    parts = [{**row, "category": "parameters", "rule": as_many, "blocks": count, "bytes": size}]
    if copies > 1:
        rule = f"allocated before recording, {copies - 1} more of the size of each gradient"
        rest = {"blocks": row["blocks"] - count, "bytes": row["bytes"] - size}
        parts.append({**row, "category": "optimizer_state", "rule": rule, **rest})
    return parts


def _keys(device: Device, lives: Lives, phases: Phases, peak: int) -> dict[_Key, int]:
    """Number of live blocks by what they share."""
    events, count = device.events, len(device.events)
    live = lives.at(peak)
    streams, weights = np.unique(lives.stream, return_counts=True)
    compute = int(streams[weights.argmax()]) if len(streams) else 0
    keys: dict[_Key, int] = {}
    for at in live.tolist():
        begin, end, origin = int(lives.begin[at]), int(lives.end[at]), int(lives.origin[at])
        step = phases.optimizer_at(begin) if origin == RECORDED else None
        key = _Key(
            made=-1 if origin == FROM_FREE else int(lives.stack[at]),
            freed=int(events.stack[end]) if end < count else -1,
            block_bytes=int(lives.size[at]),
            label=int(lives.label[at]),
            origin=origin,
            was_freed=end < count,
            in_optimizer=step is not None,
            outlives_optimizer=step is not None and end >= step[1],
            is_compute_stream=int(lives.stream[at]) == compute,
        )
        keys[key] = keys.get(key, 0) + 1
    return keys


class _Words:
    """Stacks and categories in words, each found once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stacks: dict[int, Stack] = {-1: NO_STACK}

    def stack(self, index: int) -> Stack:
        if index not in self._stacks:
            self._stacks[index] = Stack(shown(self._snapshot.frames(index)))
        return self._stacks[index]

    def row(self, key: _Key) -> Row:
        """The row of a group, without its numbers; `stack` last, of which the first one met stands for the group."""
        made, freed, label = self.stack(key.made), self.stack(key.freed), self._snapshot.labels[key.label]
        category, rule = categorise(
            Life(
                made=made, freed=freed, block_bytes=key.block_bytes, label=label,
                was_recorded=key.origin == RECORDED, was_freed=key.was_freed, in_optimizer=key.in_optimizer,
                outlives_optimizer=key.outlives_optimizer, is_compute_stream=key.is_compute_stream,
            )
        )  # fmt: skip
        told = freed if key.origin == FROM_FREE else made
        return {
            "category": category,
            "rule": rule,
            "mem_origin": ORIGINS[key.origin],
            "frame": source_line(told.frames),
            "label": label or None,
            "block_bytes": key.block_bytes,
            "stack": in_words(told.frames),
        }


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
