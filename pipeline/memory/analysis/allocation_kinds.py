"""Blocks that share all that decides what they are for: where they were made and released, and what surrounds that.

A trace has a million blocks and a few hundred such kinds, so that stacks are put into words once per kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.analysis.attribution import CUBLAS_WORKSPACE_BYTES, NO_STACK, Life, Stack, categorise
from sweepscope.pipeline.memory.analysis.phases import Phases
from sweepscope.pipeline.memory.analysis.replay import FROM_FREE, RECORDED, Lives
from sweepscope.pipeline.memory.analysis.stacks import in_words, shown, source_line
from sweepscope.pipeline.memory.snapshot.snapshot import Device, Snapshot
from sweepscope.pipeline.memory.snapshot.trace import Ints

ORIGINS = ("recorded", "from_block", "from_free", "no_record")

Row = dict[str, Any]


@dataclass(frozen=True)
class Use:
    """What blocks must share to be told about together. `block_bytes` is 0 where sizes are not told apart."""

    made: int
    freed: int
    block_bytes: int
    label: int
    origin: int
    was_freed: bool
    in_optimizer: bool
    outlives_optimizer: bool
    is_compute_stream: bool


def uses_of(
    device: Device, lives: Lives, phases: Phases, rows: npt.NDArray[np.intp], *, by_size: bool
) -> tuple[list[Use], Ints]:
    """The kinds among some lives, in the order in which they are met, and the number of the kind of each.

    Without `by_size` sizes count only where a rule asks for them: a block without a stack that is as large as cuBLAS's
    workspace.
    """
    events, count = device.events, len(device.events)
    begin, end, origin = lives.begin[rows], lives.end[rows], lives.origin[rows]
    made = np.where(origin == FROM_FREE, -1, lives.stack[rows])
    was_freed = end < count
    freed = np.full(len(rows), -1, np.int64)
    freed[was_freed] = events.stack[end[was_freed]]
    step_end = phases.optimizer_ends(begin)
    step_end[origin != RECORDED] = -1
    size = lives.size[rows]
    if not by_size:
        size = np.where((made < 0) & np.isin(size, list(CUBLAS_WORKSPACE_BYTES)), size, 0)
    columns: tuple[npt.NDArray[Any], ...] = (
        made,
        freed,
        size,
        lives.label[rows],
        origin,
        was_freed,
        step_end >= 0,
        (step_end >= 0) & (end >= step_end),
        lives.stream[rows] == _compute_stream(lives),
    )
    code = np.zeros(len(rows), np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        if len(values) > 1:  # numbered anew each time, so that no product can overflow
            _, code = np.unique(code * len(values) + number, return_inverse=True)
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    kinds = [Use(*values) for values in zip(*(column[first[order]].tolist() for column in columns), strict=True)]
    return kinds, place[kind]


def _compute_stream(lives: Lives) -> int:
    streams, weights = np.unique(lives.stream, return_counts=True)
    return int(streams[weights.argmax()]) if len(streams) else 0


class Words:
    """Stacks and categories in words, each found once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stacks: dict[int, Stack] = {-1: NO_STACK}

    def stack(self, index: int) -> Stack:
        """A stack without machinery."""
        if index not in self._stacks:
            self._stacks[index] = Stack(shown(self._snapshot.frames(index)))
        return self._stacks[index]

    def row(self, use: Use) -> Row:
        """The row of a kind, without its numbers; `stack` last, of which the first one met stands for a group."""
        made, freed, label = self.stack(use.made), self.stack(use.freed), self._snapshot.labels[use.label]
        category, rule = categorise(
            Life(
                made=made,
                freed=freed,
                block_bytes=use.block_bytes,
                label=label,
                was_recorded=use.origin == RECORDED,
                was_freed=use.was_freed,
                in_optimizer=use.in_optimizer,
                outlives_optimizer=use.outlives_optimizer,
                is_compute_stream=use.is_compute_stream,
            )
        )
        told = freed if use.origin == FROM_FREE else made
        return {
            "category": category,
            "rule": rule,
            "mem_origin": ORIGINS[use.origin],
            "frame": source_line(told.frames),
            "label": label or None,
            "block_bytes": use.block_bytes,
            "stack": in_words(told.frames),
        }
