"""How many accelerators a question needs: the fastest layout on each of several cluster sizes at one global batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import AUTO, MARGIN, OUT_OF_MEMORY, Found, search

SECONDS_PER_DAY = 86_400.0
_FIGURES = ("mfu", "tokens_per_s", "scaling_efficiency", "days", "gpu_hours")
MOST_GPUS = 65_536
"""Accelerators up to which a target is looked for where no range is given."""


@dataclass(frozen=True)
class Size:
    """The fastest layout on `num_gpus` accelerators: a row of a search, or None and the `reason`.

    `tokens_per_s` is that of the whole cluster, as runs are expected to reach it where a penalty was learned;
    `mfu` likewise.
    """

    num_gpus: int
    row: dict[str, Any] | None
    reason: str
    mfu: float = 0.0
    tokens_per_s: float = 0.0

    def days(self, tokens: float) -> float:
        """Days that training on so many tokens takes without interruption."""
        return tokens / self.tokens_per_s / SECONDS_PER_DAY if self.tokens_per_s else float("inf")

    def gpu_hours(self, tokens: float) -> float:
        """Accelerator-hours of that."""
        return 24.0 * self.num_gpus * self.days(tokens)


def size_of(request: Request, num_gpus: int, *, margin: float = MARGIN, by: str = AUTO) -> Size:
    """The fastest layout of `request` on another number of accelerators."""
    found = search(replace(request, num_gpus=num_gpus), top=1, margin=margin, by=by)
    if not found.layouts.height:
        return Size(num_gpus, None, why_not(found))
    row = found.layouts.row(0, named=True)
    slow = row["est_penalty"] or 1.0
    return Size(num_gpus, row, "", row["est_mfu"] / slow, num_gpus * row["est_tokens_per_s_per_gpu"] / slow)


def why_not(found: Found) -> str:
    """Why a search found nothing: out of memory, or the commonest reason why nothing can be launched."""
    return OUT_OF_MEMORY if found.launchable else next(iter(found.pruned), "nothing to try")


def doublings(first: int, last: int) -> list[int]:
    """Counts from `first` to `last`, doubling, with `last` as the end.

    >>> doublings(8, 48)
    [8, 16, 32, 48]
    """
    counts = []
    while first < last:
        counts.append(first)
        first *= 2
    return [*counts, last]


def sizes(request: Request, counts: Sequence[int], *, margin: float = MARGIN, by: str = AUTO) -> list[Size]:
    """The fastest layout on each count."""
    return [size_of(request, count, margin=margin, by=by) for count in counts]


def enough(request: Request, tokens: float, days: float, *, margin: float = MARGIN, by: str = AUTO) -> Iterator[Size]:
    """Sizes by doubling from one node, until one trains on `tokens` within `days`, then those between it and its half.

    With a fixed batch more accelerators stop helping: the search ends at MOST_GPUS, or where twice as many were slower.
    """
    per_node = request.asked.cluster.gpus_per_node
    before = 0.0
    for count in doublings(per_node, MOST_GPUS):
        size = size_of(request, count, margin=margin, by=by)
        if size.days(tokens) <= days:
            between = [count // 8 * eighths for eighths in (5, 6, 7) if count // 8 % per_node == 0]
            yield from (size_of(request, one, margin=margin, by=by) for one in between)
        yield size
        if size.days(tokens) <= days or (before and size.tokens_per_s <= before):
            return
        before = size.tokens_per_s


def fewest(found: Sequence[Size], tokens: float, days: float) -> Size | None:
    """The smallest size that trains on `tokens` within `days`, or None."""
    return next((size for size in sorted(found, key=lambda one: one.num_gpus) if size.days(tokens) <= days), None)


def size_table(found: Sequence[Size], tokens: float | None) -> pl.DataFrame:
    """One row per size: layout, MFU, throughput of the cluster, efficiency against the smallest that fits, and days."""
    base = next((size.mfu for size in found if size.row), None)
    layout = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "zero_stage", "recompute", "pipeline_schedule")
    rows = [
        {
            "num_gpus": size.num_gpus,
            **{name: size.row[name] if size.row else None for name in layout},
            "mfu": size.mfu if size.row else None,
            "tokens_per_s": size.tokens_per_s if size.row else None,
            "scaling_efficiency": size.mfu / base if size.row and base else None,
            "days": size.days(tokens) if size.row and tokens else None,
            "gpu_hours": size.gpu_hours(tokens) if size.row and tokens else None,
            "reason": size.reason or None,
        }
        for size in found
    ]
    words = ("recompute", "pipeline_schedule", "reason")
    schema = dict.fromkeys(("num_gpus", *layout[:-2]), pl.Int64) | dict.fromkeys(words, pl.String)
    return pl.DataFrame(rows, schema_overrides=schema | dict.fromkeys(_FIGURES, pl.Float64), infer_schema_length=None)
