"""Allocation sites and their live bytes over the record.

A site is everything that one source line keeps for one category and rule. Its level is written where it changes from
one instant to the next, so that a steady site is one row. Instants are points of the timeline, including the peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.analysis.allocation_kinds import AllocationKind, Classified, Descriptions, Row
from sweepscope.pipeline.memory.analysis.at_peak import (
    AS_GRADIENTS,
    AS_STATES,
    BEFORE_RECORD,
    MAX_KINDS,
    MIN_MATCHED_BYTES,
)
from sweepscope.pipeline.memory.analysis.downsample import kept_points
from sweepscope.pipeline.memory.analysis.lifetimes import RECORDED, Lifetimes
from sweepscope.pipeline.memory.analysis.replay import Replay
from sweepscope.pipeline.memory.snapshot import trace
from sweepscope.pipeline.memory.snapshot.snapshot import Device
from sweepscope.pipeline.memory.snapshot.trace import Ints

MAX_INSTANTS = 400
MAX_SITES = 200
_SITE = ("category", "rule", "mem_origin", "frame", "label")
_MAX_FAILURES = 20

Columns = dict[str, list[Any]]


def alive_rows(
    descriptions: Descriptions,
    device: Device,
    replayed: Replay,
    classified: Classified,
    *,
    gradients: Mapping[int, int],
    timeline: npt.NDArray[np.intp],
) -> tuple[list[Row], Columns]:
    """Rows of `memory_sites`, the largest first, and columns of `memory_alive`.

    At every instant the sites' bytes add up to the active level, up to what the replay cannot explain.

    Args:
        descriptions: of the snapshot.
        device: the device.
        replayed: its replay.
        classified: the kinds of all its lifetimes.
        gradients: number of gradients by size (`gradient_sizes`).
        timeline: points to choose instants from.
    """
    lifetimes = replayed.lifetimes
    if not len(lifetimes.size):
        return [], {}
    peak_event = int(replayed.active.argmax())
    instants = _instants(device, replayed, timeline)
    sites, site_of_kind = _sites(descriptions, classified.kinds)
    site = _by_size(sites, site_of_kind[classified.kind_of], lifetimes, lifetimes.at(peak_event), gradients)
    first = np.searchsorted(instants, lifetimes.begin, side="right")
    last = np.searchsorted(instants, lifetimes.end, side="right")  # alive at instants first to last - 1
    peak = int(np.searchsorted(instants, peak_event))
    share_of_record, is_at_peak = np.maximum(last - first, 0) / len(instants), (first <= peak) & (last > peak)
    site, sites = _largest(sites, site, lifetimes.size * (share_of_record + is_at_peak))
    shape = len(sites), len(instants)
    levels = _over_time(shape, site, first, last, lifetimes.size)
    blocks = _over_time(shape, site, first, last, np.ones_like(lifetimes.size))
    is_new = lifetimes.origin == RECORDED
    made = np.bincount(site[is_new], minlength=len(sites))
    made_bytes = np.zeros(len(sites), np.int64)
    np.add.at(made_bytes, site[is_new], lifetimes.size[is_new])
    top = levels.max(axis=1)
    order = np.argsort(-top, kind="stable")
    order = order[(top[order] > 0) | (made[order] > 0)]  # others existed before the record and are merged above
    rows = [
        {
            "device": device.number,
            "site_no": number,
            **sites[at],
            "max_bytes": int(top[at]),
            "allocations": int(made[at]),
            "allocated_in_all_bytes": int(made_bytes[at]),
        }
        for number, at in enumerate(order.tolist(), start=1)
    ]
    return rows, _changes(device.number, instants, levels[order], blocks[order])


def _over_time(shape: tuple[int, int], site: Ints, first: Ints, last: Ints, weight: Ints) -> Ints:
    """Weight of the live blocks of each site (row) at each instant (column).

    Args:
        shape: number of sites and of instants.
        site: index of the site of each block.
        first: index of the first instant at which each block is alive.
        last: index behind the last one.
        weight: what each block counts for.
    """
    sites, instants = shape
    change = np.zeros((sites, instants + 1), np.int64)
    np.add.at(change, (site, first), weight)
    np.subtract.at(change, (site, last), weight)
    return np.cumsum(change, axis=1)[:, :-1]


def _instants(device: Device, replayed: Replay, timeline: npt.NDArray[np.intp]) -> Ints:
    failed = np.flatnonzero(device.events.action == trace.OOM)[-_MAX_FAILURES:]
    chosen = timeline[kept_points(replayed.active[timeline], limit=MAX_INSTANTS)]
    return np.unique(np.concatenate([chosen, [int(replayed.active.argmax())], failed])).astype(np.int64)


def _sites(descriptions: Descriptions, kinds: list[AllocationKind]) -> tuple[list[Row], Ints]:
    """Sites, and the index of the site of each kind."""
    sites: dict[tuple[Any, ...], int] = {}
    rows: list[Row] = []
    numbers = []
    for kind in kinds[:MAX_KINDS]:
        row = descriptions.row(kind)
        key = tuple(row[name] for name in _SITE)
        if key not in sites:
            sites[key] = len(rows)
            rows.append({name: row[name] for name in (*_SITE, "stack")})
        numbers.append(sites[key])
    if len(kinds) > MAX_KINDS:
        rows.append(_merged("unknown"))
        numbers += [len(rows) - 1] * (len(kinds) - MAX_KINDS)
    return rows, np.array(numbers, np.int64)


def _by_size(
    sites: list[Row], site: Ints, lifetimes: Lifetimes, live: npt.NDArray[np.intp], gradients: Mapping[int, int]
) -> Ints:
    """`site` with otherwise unexplained blocks separated by size, as in `memory_at_peak`; appends to `sites`.

    Of k times as many blocks from before the record as there are gradients of the size, one share is parameters.
    """
    is_open = np.array([row["category"] == "unknown" and row["rule"].startswith(BEFORE_RECORD) for row in sites])
    site = site.copy()
    found: dict[tuple[int, str], int] = {}
    for at in np.flatnonzero(is_open).tolist():
        mine = live[site[live] == at]
        for size, count in gradients.items():
            rows = mine[lifetimes.size[mine] == size]
            if size < MIN_MATCHED_BYTES or not len(rows) or len(rows) % count:
                continue
            for part, (category, rule) in ((rows[:count], AS_GRADIENTS), (rows[count:], AS_STATES)):
                if len(part):
                    number = found.setdefault((at, category), len(sites))
                    if number == len(sites):
                        sites.append({**sites[at], "category": category, "rule": rule})
                    site[part] = number
    return site


def _largest(sites: list[Row], site: Ints, weight: npt.NDArray[np.float64]) -> tuple[Ints, list[Row]]:
    """Index of the site of each block, and the sites with most bytes; the other sites of a category are merged."""
    if len(sites) <= MAX_SITES:
        return site, sites
    score = np.bincount(site, weights=weight, minlength=len(sites))
    kept = np.argsort(-score, kind="stable")[:MAX_SITES]
    number = np.full(len(sites), -1, np.int64)
    number[kept] = np.arange(len(kept))
    rows = [sites[at] for at in kept.tolist()]
    merged: dict[str, int] = {}
    for at in np.flatnonzero(number < 0).tolist():
        category = sites[at]["category"]
        if category not in merged:
            merged[category] = len(rows)
            rows.append(_merged(category))
        number[at] = merged[category]
    return number[site], rows


def _merged(category: str) -> Row:
    unknown = dict.fromkeys(("mem_origin", "frame", "label", "stack"))
    return {"category": category, "rule": "smaller sites put together", **unknown}


def _changes(device: int, instants: Ints, levels: Ints, blocks: Ints) -> Columns:
    """Columns of `memory_alive`: one entry per site and instant whose level differs from the one before."""
    before = np.zeros((2, len(levels), 1), np.int64)
    now = np.stack([levels, blocks])
    site, at = np.nonzero((np.diff(now, axis=2, prepend=before) != 0).any(axis=0))
    return {
        "device": [device] * len(site),
        "site_no": (site + 1).tolist(),
        "point": instants[at].tolist(),
        "bytes": levels[site, at].tolist(),
        "blocks": blocks[site, at].tolist(),
    }
