"""A list of layouts as a grid with one axis per group of choices, so that each part is computed once per combination.

Layouts of one question share most of their choices: a hundred thousand of them have a few thousand meshes with their
micro-batches, and a handful of shardings, recomputations and schedules. The grid of those is computed at the speed of a
grid, and each layout reads its cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts

Indices = NDArray[np.intp]
_Values = TypeVar("_Values", NDArray[np.float64], NDArray[np.bool_])
AXES = (
    ("tp", "pp", "cp", "mbs", "ep", "dp", "gas", "etp", "sequence_parallel"),
    ("zero_stage", "dp_replicate"),
    ("recompute",),
    ("schedule", "vpp"),
)
"""Columns of a layout that go together on each axis of the grid."""
MOST_CELLS = 4
"""Cells of the grid for each layout at most: with more, most of them would be computed for nothing."""
LEAST_LAYOUTS = 1_000
"""Shorter lists are computed as they are: finding the grid would take longer."""


@dataclass(frozen=True)
class Grid:
    """`at` has one axis for each of AXES; `indices` are those of every listed layout on each axis."""

    at: Layouts
    indices: tuple[Indices, ...]
    _flat: dict[tuple[int, ...], Indices] = field(default_factory=dict, compare=False)

    def take(self, values: _Values) -> _Values:
        """Values of the listed layouts out of `values` on the grid, which may broadcast along any axis."""
        shape = (1,) * (len(AXES) - values.ndim) + values.shape
        if values.size == 1:
            return np.full(self.indices[0].size, values.item(), values.dtype)
        if shape not in self._flat:
            flat = np.zeros(1, np.intp)
            for size, indices in zip(shape, self.indices, strict=True):
                flat = flat * size + (indices if size > 1 else 0)
            self._flat[shape] = flat
        return values.ravel()[self._flat[shape]]


def regrid(at: Layouts) -> Grid | None:
    """The grid of a list, or None for a short list or layouts that share too little."""
    size = at.shape[0]
    if len(at.shape) > 1 or size < LEAST_LAYOUTS:
        return None
    columns: dict[str, Array] = {}
    indices, cells = [], 1
    for axis, names in enumerate(AXES):
        first, index = distinct([getattr(at, name) for name in names])
        cells *= first.size
        if cells > MOST_CELLS * size:
            return None
        shape = tuple(-1 if other == axis else 1 for other in range(len(AXES)))
        for name in names:
            column = getattr(at, name)
            columns[name] = (column[first] if column.size > 1 else column).reshape(shape)
        indices.append(np.broadcast_to(index, (size,)))
    return Grid(Layouts(**columns), tuple(indices))


def distinct(columns: list[Array]) -> tuple[Indices, Indices]:
    """(row of the first of each distinct tuple, which tuple each row has) of columns of whole numbers, in any order.

    Columns that follow from those before them, as dp does from the other degrees, are only compared.
    """
    first, codes = np.zeros(1, np.intp), np.zeros(1, np.intp)
    for column in columns:
        if column.size == 1 or _follows(column, first, codes):
            continue
        ranks, more = _ranked(column.astype(np.intp))
        codes, count = _ranked(codes * more + ranks)
        first = np.empty(count, np.intp)
        first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
    return first, codes


def _follows(column: Array, first: Indices, codes: Indices) -> bool:
    """Whether rows of one code have one value."""
    glance = slice(1_000)
    first_values = column[first]
    return bool((first_values[codes[glance]] == column[glance]).all() and (first_values[codes] == column).all())


def _ranked(codes: Indices) -> tuple[Indices, int]:
    """Numbers from 0 on without gaps for codes that may have some, and how many there are."""
    top = int(codes.max()) + 1
    if top > 8 * codes.size + 1_000:
        values, indices = np.unique(codes, return_inverse=True)
        return indices, values.size
    is_met = np.zeros(top, np.bool_)
    is_met[codes] = True
    ranks = np.cumsum(is_met) - 1
    return ranks[codes], int(ranks[-1]) + 1
