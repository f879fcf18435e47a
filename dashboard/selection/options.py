"""Which options a selector lists where the store has thousands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

MOST_LISTED = 1_000
"""A browser is slow with many more."""


def listed(names: Collection[str], *always: str | None) -> list[str]:
    """The first of the names, and after them those of `always` that are names, too.

    >>> listed(["a", "b"], "b", "c", None)
    ['a', 'b']
    """
    first: Iterable[str] = islice(names, MOST_LISTED)
    return list(dict.fromkeys([*first, *(name for name in always if name is not None and name in names)]))
