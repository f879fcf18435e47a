"""Settings of a log into which several launches wrote: each states its own, others than those of another one maybe."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.inference.settings import Chosen, choose
from sweepscope.pipeline.logs.inference.stated import Stated


def choose_by_launch(
    found: Sequence[Stated], launches: Sequence[int], step_tokens: float | None = None
) -> list[Chosen]:
    """One value per column as of `choose`; of a column that each launch states clearly, the last launch's.

    Args:
        found: what is stated.
        launches: numbers of the lines with which launches begin, in order; empty where there is one only.
        step_tokens: see `choose`.
    """
    together = {one.column: one for one in choose(found, step_tokens)}
    if not launches:
        return list(together.values())
    by_column: dict[str, list[Chosen]] = {}
    for part in _by_launch(found, launches):
        for one in choose(part, step_tokens):
            by_column.setdefault(one.column, []).append(one)
    for column, ones in by_column.items():
        if all(one.is_used for one in ones) and len(values := dict.fromkeys(one.value for one in ones)) > 1:
            reason = f"{ones[-1].reason}; of the launches {', '.join(values)}"
            together[column] = replace(ones[-1], reason=reason)
    return list(together.values())


def unclear_names(found: Iterable[Stated], launches: Sequence[int]) -> Collection[str]:
    """Names that state several values within one launch."""
    values: dict[tuple[int, str], set[str]] = {}
    for one in found:
        values.setdefault((bisect_right(launches, one.line_no), one.name), set()).add(one.value)
    return {name for (_, name), own in values.items() if len(own) > 1}


def _by_launch(found: Iterable[Stated], launches: Sequence[int]) -> list[list[Stated]]:
    parts: dict[int, list[Stated]] = {}
    for one in found:
        parts.setdefault(bisect_right(launches, one.line_no), []).append(one)
    return [parts[launch] for launch in sorted(parts)]
