"""Names that a dump of nested settings prints at several depths: the trainer's own are the outermost ones."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.pipeline.logs.inference.stated import Stated


def outermost(found: Sequence[Stated]) -> list[Stated]:
    """`found` without what is stated below a deeper indentation, where its column has another value further out.

    In front of such a name there is nothing but its indentation, as in YAML and in what dataclasses print:
    `    max_num_iterations=30000,` is the trainer's, and one further in that of a part of it.
    """
    by_column: dict[str, list[Stated]] = {}
    for one in found:
        if not one.text[: one.head].strip():
            by_column.setdefault(one.column, []).append(one)
    inner: set[Stated] = set()
    for ones in by_column.values():
        if len({one.value for one in ones}) > 1:
            least = min(one.head for one in ones)
            inner.update(one for one in ones if one.head > least)
    return [one for one in found if one not in inner]
