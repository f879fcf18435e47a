"""Kinds of allocations: blocks that share everything from which their category is derived.

A trace has a million blocks of a few hundred kinds, so stacks are described once per kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.analysis.attribution import (
    CUBLAS_WORKSPACE_BYTES,
    NO_STACK,
    BlockFacts,
    Stack,
    categorise,
)
from sweepscope.pipeline.memory.analysis.lifetimes import FROM_FREE, RECORDED, Lifetimes
from sweepscope.pipeline.memory.analysis.phases import Phases
from sweepscope.pipeline.memory.analysis.stacks import source_line, stack_text, without_machinery
from sweepscope.pipeline.memory.snapshot.snapshot import Device, Snapshot
from sweepscope.pipeline.memory.snapshot.trace import Ints

ORIGINS = ("recorded", "from_block", "from_free", "no_record")

Row = dict[str, Any]


@dataclass(frozen=True)
class AllocationKind:
    """What the blocks of one kind share. `block_bytes` is 0 where kinds are not separated by size.

    `made` and `freed` are indices of stacks, `label` of a label of the snapshot, `origin` of ORIGINS.
    """

    made: int
    freed: int
    block_bytes: int
    label: int
    origin: int
    was_freed: bool
    in_optimizer: bool
    outlives_optimizer: bool
    is_compute_stream: bool


@dataclass(frozen=True)
class Classified:
    """Kinds of allocations in order of their first block, and the index of the kind of each block."""

    kinds: list[AllocationKind]
    kind_of: Ints


def kinds_of(
    device: Device, lifetimes: Lifetimes, phases: Phases, rows: npt.NDArray[np.intp], *, by_size: bool
) -> Classified:
    """The kinds of some blocks.

    Args:
        device: the device's events.
        lifetimes: its blocks.
        phases: its annotations.
        rows: the blocks of `lifetimes` to classify.
        by_size: separate kinds by size. Otherwise size counts only for the rule that needs it: a block without a stack
            that is as large as cuBLAS's workspace.
    """
    events, count = device.events, len(device.events)
    begin, end, origin = lifetimes.begin[rows], lifetimes.end[rows], lifetimes.origin[rows]
    made = np.where(origin == FROM_FREE, -1, lifetimes.stack[rows])
    was_freed = end < count
    freed = np.full(len(rows), -1, np.int64)
    freed[was_freed] = events.stack[end[was_freed]]
    step_end = phases.optimizer_ends(begin)
    step_end[origin != RECORDED] = -1
    size = lifetimes.size[rows]
    if not by_size:
        size = np.where((made < 0) & np.isin(size, list(CUBLAS_WORKSPACE_BYTES)), size, 0)
    columns: tuple[npt.NDArray[Any], ...] = (
        made,
        freed,
        size,
        lifetimes.label[rows],
        origin,
        was_freed,
        step_end >= 0,
        (step_end >= 0) & (end >= step_end),
        lifetimes.stream[rows] == _compute_stream(lifetimes),
    )
    code = np.zeros(len(rows), np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        if len(values) > 1:  # numbered anew each time, so that no product can overflow
            _, code = np.unique(code * len(values) + number, return_inverse=True)
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    index = np.empty(len(order), np.int64)
    index[order] = np.arange(len(order))
    kinds = [
        AllocationKind(*values) for values in zip(*(column[first[order]].tolist() for column in columns), strict=True)
    ]
    return Classified(kinds, index[group])


def _compute_stream(lifetimes: Lifetimes) -> int:
    streams, weights = np.unique(lifetimes.stream, return_counts=True)
    return int(streams[weights.argmax()]) if len(streams) else 0


class Descriptions:
    """Descriptions of stacks and kinds, each stack described once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stacks: dict[int, Stack] = {-1: NO_STACK}

    def stack(self, index: int) -> Stack:
        """A stack without frames of the interpreter and the recorder."""
        if index not in self._stacks:
            self._stacks[index] = Stack(without_machinery(self._snapshot.frames(index)))
        return self._stacks[index]

    def row(self, kind: AllocationKind) -> Row:
        """Row of a kind, without its numbers: category, rule, origin, source line, label, size and, last, `stack`."""
        made, freed, label = self.stack(kind.made), self.stack(kind.freed), self._snapshot.labels[kind.label]
        category, rule = categorise(
            BlockFacts(
                made=made,
                freed=freed,
                block_bytes=kind.block_bytes,
                label=label,
                was_recorded=kind.origin == RECORDED,
                was_freed=kind.was_freed,
                in_optimizer=kind.in_optimizer,
                outlives_optimizer=kind.outlives_optimizer,
                is_compute_stream=kind.is_compute_stream,
            )
        )
        known = freed if kind.origin == FROM_FREE else made
        return {
            "category": category,
            "rule": rule,
            "mem_origin": ORIGINS[kind.origin],
            "frame": source_line(known.frames),
            "label": label or None,
            "block_bytes": kind.block_bytes,
            "stack": stack_text(known.frames),
        }
