"""What was alive at the active peak, in groups of blocks with one use, source line and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.memory.attribution import NO_STACK, Life, Stack, categorise
from pipeline.memory.phases import Phases
from pipeline.memory.replay import FROM_FREE, RECORDED, Lives, Replay
from pipeline.memory.snapshot import Device, Snapshot
from pipeline.memory.stacks import in_words, shown, source_line

MAX_GROUPS = 1_000
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
        told = groups.setdefault(tuple(row.values())[:-1], {**row, "blocks": 0, "bytes": 0})
        told["blocks"] += blocks
        told["bytes"] += blocks * key.block_bytes
        total += blocks * key.block_bytes
    rows = _limited(sorted(groups.values(), key=lambda row: -row["bytes"]))
    if (rest := int(replayed.active[peak]) - total) > 0:
        rows.append(_together("unattributed", "the level and the live blocks differ", blocks=0, size=rest))
    return [{"device": device.number, "group_no": number, **row} for number, row in enumerate(rows, start=1)]


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
