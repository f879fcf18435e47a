"""What the page on a snapshot shows: levels by category over the record, and a flame graph of what was alive."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

CATEGORIES = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer states",
    "activations": "activations",
    "communication": "communication",
    "temporary": "temporaries",
    "other": "other or unknown",
}
"""Categories with a colour of their own, in the order of the stack; the rest is `other`."""

SEPARATOR = " < "
NO_STACK = "no stack"
MIN_SHARE = 0.004
"""Share of the whole below which a node of the flame graph is put together with its like."""


@dataclass(frozen=True)
class Node:
    """A rectangle of the flame graph. `parent` is the id of the one around it, "" for the root."""

    id: str
    parent: str
    label: str
    bytes: int
    category: str
    is_category: bool = False


def drawn(category: str) -> str:
    """The category of a colour.

    >>> drawn("activations"), drawn("workspace")
    ('activations', 'other')
    """
    return category if category in CATEGORIES else "other"


def category_name(category: str) -> str:
    """A category as readers see it.

    >>> category_name("optimizer_state"), category_name("autograd_detail"), category_name("unknown")
    ('optimizer states', 'autograd detail', 'unknown')
    """
    return CATEGORIES.get(category, category.replace("_", " "))


def category_levels(changes: pl.DataFrame) -> tuple[list[int], dict[str, list[int]]]:
    """Points and the level of every category at each of them, from rows of `queries.snapshot.categories`."""
    points = sorted(set(changes["point"]))
    index_of = {point: index for index, point in enumerate(points)}
    steps = {name: np.zeros(len(points), np.int64) for name in CATEGORIES}
    for category, point, change in changes.select("category", "point", "change_bytes").iter_rows():
        steps[drawn(category)][index_of[point]] += change
    return points, {name: np.cumsum(step).tolist() for name, step in steps.items() if step.any()}


def by_category(alive: pl.DataFrame) -> list[tuple[str, int]]:
    """Bytes of each drawn category, in the order of the stack."""
    totals = dict.fromkeys(CATEGORIES, 0)
    for category, size in alive.select("category", "bytes").iter_rows():
        totals[drawn(category)] += size
    return [(name, size) for name, size in totals.items() if size]


def nearest(points: Sequence[int], wanted: int) -> int:
    """The point that is nearest to `wanted`, the earlier of two.

    >>> nearest([0, 10, 20], 14), nearest([0, 10, 20], 99), nearest([0, 10], 5)
    (10, 20, 0)
    """
    index = bisect_left(points, wanted)
    around = points[max(index - 1, 0) : index + 1]
    return min(around, key=lambda point: (abs(point - wanted), point))


def flame(alive: pl.DataFrame) -> list[Node]:
    """Nodes of an icicle: all, then category, then frames from the outermost that is kept to the innermost.

    The bytes of the nodes in a node add up to at most its own. Small ones of one parent are put together.
    """
    whole = int(alive["bytes"].sum())
    if not whole:
        return []
    sizes: dict[tuple[str, ...], int] = {(): whole}
    for category, stack, frame, size in alive.select("category", "stack", "frame", "bytes").iter_rows():
        frames = stack.split(SEPARATOR)[::-1] if stack else [frame or NO_STACK]
        path: tuple[str, ...] = ()
        for part in (category, *frames):
            path = (*path, part)
            sizes[path] = sizes.get(path, 0) + size
    return _nodes(sizes, whole)


def _nodes(sizes: Mapping[tuple[str, ...], int], whole: int) -> list[Node]:
    numbers = {path: str(number) for number, path in enumerate(sizes)}
    nodes = [Node("0", "", "alive", whole, "other")]
    small: dict[tuple[str, ...], list[int]] = {}
    for path, size in sizes.items():
        if not path:
            continue
        if size >= MIN_SHARE * whole:
            is_category = len(path) == 1
            nodes.append(Node(numbers[path], numbers[path[:-1]], path[-1], size, drawn(path[0]), is_category))
        elif sizes[path[:-1]] >= MIN_SHARE * whole:
            small.setdefault(path[:-1], []).append(size)
    for parent, sizes_inside in small.items():
        category, label = drawn(parent[0]) if parent else "other", f"{len(sizes_inside)} smaller"
        nodes.append(Node(f"{numbers[parent]}-", numbers[parent], label, sum(sizes_inside), category))
    return nodes


def in_mib(rows: pl.DataFrame) -> pl.DataFrame:
    """Columns of bytes in MiB, under names with that unit (sites reach from kilobytes to gigabytes); frames shortened.

    >>> in_mib(pl.DataFrame({"bytes": [3 << 20], "blocks": [1]})).to_dicts()
    [{'blocks': 1, 'mib': 3.0}]
    """
    sizes = [name for name in rows.columns if name == "bytes" or name.endswith("_bytes")]
    converted = [(pl.col(name) / 2**20).round(2).alias(f"{name.removesuffix('bytes')}mib") for name in sizes]
    shown = rows.with_columns(converted).drop(sizes)
    if "frame" not in rows.columns:
        return shown
    return shown.with_columns(pl.col("frame").map_elements(short_place, pl.String))


def short_place(text: str | None) -> str | None:
    """A frame with its last two directories, so that a table shows where rather than from which root.

    >>> short_place("/home/me/run/src/model/mlp.py:39 forward"), short_place("AccumulateGrad"), short_place(None)
    ('…/src/model/mlp.py:39 forward', 'AccumulateGrad', None)
    """
    if text is None or text.count("/") <= 3:
        return text
    return "…/" + "/".join(text.split("/")[-3:])


def short_frame(text: str) -> str:
    """A frame without its directories.

    >>> short_frame("/opt/torch/nn/modules/module.py:100 forward"), short_frame("at::empty")
    ('module.py:100 forward', 'at::empty')
    """
    path, space, name = text.partition(" ")
    return f"{path.rsplit('/', 1)[-1]}{space}{name}"
