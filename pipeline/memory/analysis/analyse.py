"""Rows of the memory tables from one snapshot, as plain values that JSON can carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.analysis.allocation_kinds import Descriptions, kinds_of
from sweepscope.pipeline.memory.analysis.at_peak import gradient_sizes, peak_rows
from sweepscope.pipeline.memory.analysis.downsample import kept_points
from sweepscope.pipeline.memory.analysis.live_sites import Columns, alive_rows
from sweepscope.pipeline.memory.analysis.phases import Phases
from sweepscope.pipeline.memory.analysis.replay import Replay, replay
from sweepscope.pipeline.memory.snapshot import trace
from sweepscope.pipeline.memory.snapshot.segments import ALLOCATED, INACTIVE
from sweepscope.pipeline.memory.snapshot.snapshot import Device, Snapshot, read_snapshot

Row = dict[str, Any]

# Default settings of PyTorch, which are not reported.
_DEFAULTS = (
    {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": "-1", "garbage_collection_threshold": "0.0"}
    | {"expandable_segments": "False", "release_lock_on_cudamalloc": "False", "pinned_num_register_threads": "1"}
    | {"pinned_use_cuda_host_register": "False", "graph_capture_record_stream_reuse": "False"}
)


ROUND_BYTES = 512
_LARGEST = 2**63 - 1

_GIVING_BACK = (trace.SEGMENT_FREE, trace.SEGMENT_UNMAP)
_OF_SEGMENTS = (
    *("segments", "blocks", "reserved_bytes", "peak_reserved_bytes", "reserved_at_peak_bytes"),
    *("releasable_bytes", "largest_free_block_bytes", "is_expandable"),
)


def analyse(chunks: Iterable[bytes]) -> dict[str, list[Row] | Columns]:
    """Rows by table, those of `memory_alive` as columns, without the columns that name the file.

    Tables: `memory_snapshots`, `memory_timeline`, `memory_at_peak`, `memory_sites`, `memory_alive`.

    Raises:
        RefusedError: the bytes are not the pickle of a snapshot, or one that no allocator writes.
    """
    snapshot = read_snapshot(chunks)
    rows: dict[str, list[Row]] = {
        "memory_snapshots": [],
        "memory_timeline": [],
        "memory_at_peak": [],
        "memory_sites": [],
    }
    alive: Columns = {}
    for device in snapshot.devices:
        replayed = replay(device)
        phases = Phases(snapshot.annotations, device.number, device.events.time_us)
        rows["memory_snapshots"].append(_summary(snapshot, device, replayed, phases))
        kept = kept_points(replayed.active, replayed.allocated, replayed.reserved)
        rows["memory_timeline"] += _timeline(device, replayed, phases, kept)
        lifetimes, descriptions = replayed.lifetimes, Descriptions(snapshot)
        classified = kinds_of(device, lifetimes, phases, np.arange(len(lifetimes.size)), by_size=False)
        gradients = gradient_sizes(classified, descriptions, lifetimes)
        rows["memory_at_peak"] += peak_rows(descriptions, device, replayed, phases, gradients)
        sites, levels = alive_rows(descriptions, device, replayed, classified, gradients=gradients, timeline=kept)
        rows["memory_sites"] += sites
        for name, values in levels.items():
            alive.setdefault(name, []).extend(values)
    return {**rows, "memory_alive": alive}


def _summary(snapshot: Snapshot, device: Device, replayed: Replay, phases: Phases) -> Row:
    events, peak = device.events, int(replayed.active.argmax())
    known = events.time_us[events.time_us != trace.NO_TIME]
    at_peak = int(replayed.active[peak])
    violations = {**replayed.violations, **_impossible_values(device)}
    odd = [*snapshot.warnings, *(f"{count:,} {what}" for what, count in violations.items()), *replayed.notes]
    row: Row = {
        "device": device.number,
        "mem_source": "snapshot",
        "events": len(events),
        **_state(device),
        "peak_requested_allocated_bytes": int(replayed.allocated.max()),
        "peak_requested_active_bytes": at_peak,
        "peak_reserved_bytes": int(replayed.reserved.max()),
        "peak_is_lower_bound": replayed.is_cut,
        "peak_after_events": peak if len(events) else None,
        "peak_at": _time(events.time_us[peak - 1]) if peak else None,
        "peak_phase": phases.at(peak) if len(events) else None,
        "reserved_at_peak_bytes": int(replayed.reserved[peak]),
        "fragmentation_at_peak": int(replayed.reserved[peak]) / at_peak - 1 if at_peak > 0 else None,
        "start_requested_active_bytes": int(replayed.active[0]) if len(events) else None,
        "recorded_from": _time(known[0]) if len(known) else None,
        "recorded_until": _time(known[-1]) if len(known) else None,
        **_failures(device, replayed),
        "is_expandable": bool(device.segments.is_expandable.any()) if len(device.segments.size) else None,
        "allocator_settings": _settings(snapshot.settings),
        "violations": sum(violations.values()),
        "warnings": "; ".join(odd) or None,
    }
    return row | _without_allocator(row) if device.is_profile else row


def _without_allocator(row: Row) -> Row:
    """Columns of a snapshot made from a profile: everything about segments is unknown."""
    unknown = [name for name in row if name.startswith(("fragmentation", "inactive_split"))]
    warnings = [row["warnings"]] if row["warnings"] else []
    return {
        **dict.fromkeys([*_OF_SEGMENTS, *unknown]),
        "peak_is_lower_bound": row["start_requested_active_bytes"] > 0,
        "warnings": "; ".join([*warnings, "made from a profile, which does not know what was reserved"]),
    }


def _state(device: Device) -> Row:
    """Columns of the state at the end. `fragmentation` is the sum of its two parts."""
    segments, blocks = device.segments, device.blocks
    is_free = blocks.state == INACTIVE
    is_alone = segments.blocks[blocks.segment] == 1
    reserved = int(segments.size.sum())
    allocated = int(blocks.size[blocks.state == ALLOCATED].sum())
    active, requested = int(blocks.size[~is_free].sum()), int(blocks.requested[~is_free].sum())
    releasable = int(blocks.size[is_free & is_alone].sum())
    split = is_free & ~is_alone
    return {
        "segments": len(segments.size),
        "blocks": len(blocks.size),
        "reserved_bytes": reserved,
        "allocated_bytes": allocated,
        "active_bytes": active,
        "requested_bytes": requested,
        "inactive_split_bytes": int(blocks.size[split].sum()),
        "inactive_split_blocks": int(split.sum()),
        "releasable_bytes": releasable,
        "rounding_bytes": active - requested,
        "largest_free_block_bytes": int(blocks.size[is_free].max()) if is_free.any() else 0,
        "fragmentation": reserved / allocated - 1 if allocated else None,
        "fragmentation_releasable": releasable / allocated if allocated else None,
        "fragmentation_split": (reserved - allocated - releasable) / allocated if allocated else None,
    }


def _failures(device: Device, replayed: Replay) -> Row:
    """Columns of failed allocations: their number, and the last of them in detail."""
    events = device.events
    failed = np.flatnonzero(events.action == trace.OOM)
    row: Row = {"oom_events": len(failed)}
    if not len(failed):
        return row
    last = int(failed[-1])
    before, free = last, int(events.addr[last])
    while before and events.action[before - 1] in _GIVING_BACK:
        before -= 1
    return {
        **row,
        "oom_requested_bytes": int(events.size[last]),
        "oom_device_free_bytes": free if free <= _LARGEST else None,
        "oom_requested_active_bytes": int(replayed.active[last]),
        "oom_reserved_bytes": int(replayed.reserved[last]),
        "oom_inactive_bytes": _inactive_at(device, replayed, last),
        "oom_segments_freed": last - before,
    }


def _impossible_values(device: Device) -> dict[str, int]:
    """Counts of values that no device can have, by name."""
    events, blocks = device.events, device.blocks
    is_over = (blocks.state != INACTIVE) & (blocks.requested > blocks.size)
    is_huge = (events.action == trace.OOM) & (events.addr > _LARGEST)
    counts = {"blocks smaller than requested": int(is_over.sum()), "free bytes beyond any device": int(is_huge.sum())}
    return {name: count for name, count in counts.items() if count}


def _level(value: np.int64) -> int | None:
    """Bytes at a point of the timeline; None for a negative level, which the summary counts in its warnings."""
    return int(value) if value >= 0 else None


def _inactive_at(device: Device, replayed: Replay, index: int) -> int:
    """Free bytes inside the segments before event `index`.

    Exact from the blocks where no event changed anything after it. Else the live blocks are rounded as the allocator
    rounds requests (CUDACachingAllocator::round_size: up to 512 bytes); remainders that it did not split off then
    count as free, so that this is an upper bound.
    """
    if (device.events.action[index:] == trace.OOM).all():
        is_free = device.blocks.state == INACTIVE
        return int(device.blocks.size[is_free].sum())
    sizes = replayed.lifetimes.size[replayed.lifetimes.at(index)]
    rounded = int((-(-np.maximum(sizes, 1) // ROUND_BYTES) * ROUND_BYTES).sum())
    return int(replayed.reserved[index]) - rounded


def _settings(settings: dict[str, str]) -> str | None:
    changed = [
        f"{name}:{value}" if name != "PYTORCH_CUDA_ALLOC_CONF" else value
        for name, value in settings.items()
        if value != _DEFAULTS.get(name) and not (name == "max_split_size" and value == str(2**64 - 1))
    ]
    return ",".join(changed)[:2_000] or None


def _timeline(device: Device, replayed: Replay, phases: Phases, kept: npt.NDArray[np.intp]) -> list[Row]:
    return [
        {
            "device": device.number,
            "category": "total",
            "point": point,
            "ts": _time(device.events.time_us[point - 1]) if point else None,
            "requested_allocated_bytes": _level(replayed.allocated[point]),
            "requested_active_bytes": _level(replayed.active[point]),
            "reserved_bytes": None if device.is_profile else _level(replayed.reserved[point]),
            "phase": phases.at(point),
        }
        for point in kept.tolist()
    ]


def _time(time_us: np.int64) -> int | None:
    """Microseconds since 1970, where known and within what a timestamp can be (the year 9999)."""
    value = int(time_us)
    return value if 0 <= value < 253_402_300_800_000_000 else None
