"""An allocator snapshot as arrays; every key that is used is checked, and no other key is read.

Keys and their history by PyTorch release: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/memory.py. The file stores no
version, so the keys that are present decide.

- Refused, because no allocator writes them: values of a wrong type or range, segments that overlap, blocks that leave
  their segment or do not fill it, one event list in two places.
- Reported in `warnings`: times that go backwards, unknown actions, blocks that do not fill an expandable segment (other
  writers list only those in use).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError, integer_of, text_of
from sweepscope.pipeline.memory.snapshot.json_snapshot import is_json_snapshot, load_json
from sweepscope.pipeline.memory.snapshot.segments import Blocks, Segments, read_segments
from sweepscope.pipeline.memory.snapshot.stream import EventRun, SnapshotMachine
from sweepscope.pipeline.memory.snapshot.trace import NO_TIME, USER_DEFINED, Events, no_events

MAX_DEVICES: Final = 128  # what PyTorch is built for at most
MAX_MARKS: Final = 100_000
MAX_FRAMES: Final = 5_000
"""Frames of one stack, from the innermost on; Python's recursion limit is a thousand."""

_MAX_NAMED_ACTIONS = 10
_PROFILER_FRAME = re.compile(r"(.+\.py)\((\d{1,9})\): (.+)")  # snapshots made from a profile have all in the name


@dataclass(frozen=True)
class Frame:
    """One line of a stack."""

    name: str
    filename: str
    line: int


@dataclass(frozen=True)
class Annotation:
    """Begin or end of a range that the user or the optimizer named; Unix time in microseconds."""

    time_us: int
    is_start: bool
    name: str
    device: int | None


@dataclass(frozen=True)
class Device:
    """Segments, blocks and events of one device; -1 is the CPU.

    `is_profile`: made from a profile (torch.cuda._memory_viz._profile_to_snapshot), not by an allocator: the one
    segment spans all tensors, and its size is meaningless.
    """

    number: int
    segments: Segments
    blocks: Blocks
    events: Events
    is_profile: bool = False


@dataclass
class Snapshot:
    """All devices of one process with segments or events."""

    devices: list[Device]
    annotations: list[Annotation]
    settings: dict[str, str]
    labels: list[str]
    warnings: list[str]
    machine: SnapshotMachine = field(repr=False)
    _frames: dict[int, tuple[Frame, ...]] = field(default_factory=dict, repr=False)

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Frames of a stack, innermost first; none for -1."""
        if stack < 0:
            return ()
        if stack not in self._frames:
            self._frames[stack] = tuple(_frame(entry) for entry in self.machine.frames(stack)[:MAX_FRAMES])
        return self._frames[stack]


def read_snapshot(chunks: Iterable[bytes]) -> Snapshot:
    """The snapshot in a pickle or JSON: the dict of `torch.cuda.memory._snapshot()` or a bare list of segments.

    Raises:
        RefusedError: it is anything else, or has values that no allocator writes.
    """
    value, machine, size = _loaded(chunks)
    if type(value) is list:  # torch.cuda.memory_snapshot(), and everything before PyTorch 2.0
        value = {"segments": value}
    if type(value) is not dict or type(value.get("segments")) is not list:
        raise RefusedError("not an allocator snapshot: no list of segments")
    warnings: list[str] = []
    traces = _traces(value.get("device_traces") or [], machine)
    devices = _devices(value["segments"], traces, machine, warnings, size=size)
    warnings += _unknown_actions(machine)
    snapshot = Snapshot(
        devices,
        _annotations(value.get("external_annotations")),
        _settings(value.get("allocator_settings")),
        [text_of(label) for label in machine.sink.labels],
        warnings,
        machine,
    )
    snapshot.annotations += [mark for device in devices for mark in _marks(snapshot, device)]
    snapshot.annotations.sort(key=lambda annotation: annotation.time_us)
    return snapshot


def _loaded(chunks: Iterable[bytes]) -> tuple[Any, SnapshotMachine, int]:
    """The value, the machine with its events and stacks, and the size in bytes."""
    stream = iter(chunks)
    head = next(stream, b"")
    whole = itertools.chain([head], stream)
    if is_json_snapshot(head):
        value, size = load_json(whole)
        return value, SnapshotMachine(()), size
    machine = SnapshotMachine(whole)
    value = machine.load()
    return value, machine, machine.base + machine.pos


def _devices(
    segments: list[object], traces: list[Events], machine: SnapshotMachine, warnings: list[str], *, size: int
) -> list[Device]:
    """Devices with segments or events, in order of their number.

    Args:
        segments: as the file has them, of all devices.
        traces: events by device.
        machine: has the stacks and events that segments refer to.
        warnings: gets what is odd.
        size: of the file, in bytes: no list is longer, however often it is referred to.
    """
    by_device = _by_device(segments)
    budget = size
    devices = []
    for number in sorted(by_device.keys() | {n for n, events in enumerate(traces) if len(events)}):
        mine = by_device.get(number, [])
        arrays, blocks = read_segments(mine, machine, warnings, number=number, budget=budget)
        budget -= len(blocks.size)
        events = traces[number] if number < len(traces) else no_events()
        is_profile = _is_profile(mine, events)
        is_cpu = is_profile and number == len(traces) - 1  # which is the last trace there
        devices.append(Device(-1 if is_cpu else number, arrays, blocks, events, is_profile))
    return devices


def _by_device(segments: list[object]) -> dict[int, list[dict[str, Any]]]:
    by_device: dict[int, list[dict[str, Any]]] = {}
    for segment in segments:
        if type(segment) is not dict:
            raise RefusedError("a segment is not a dict")
        number = integer_of(segment.get("device", 0), "the device of a segment")
        if number >= MAX_DEVICES:
            raise RefusedError(f"device {number}")
        by_device.setdefault(number, []).append(segment)
    return by_device


def _unknown_actions(machine: SnapshotMachine) -> list[str]:
    """A warning that names actions of events that no allocator of ours knows; none without such events."""
    unknown = machine.sink.unknown_actions
    if not unknown:
        return []
    counted = [f"{text_of(name)} ({count:,})" for name, count in unknown.most_common(_MAX_NAMED_ACTIONS)]
    if len(unknown) > _MAX_NAMED_ACTIONS:
        counted.append(f"{len(unknown) - _MAX_NAMED_ACTIONS} more")
    return [f"events of unknown actions were left out of the replay: {', '.join(counted)}"]


def _is_profile(segments: list[dict[str, Any]], events: Events) -> bool:
    """Whether a device comes from a profile: one segment without an allocator's keys, events without times."""
    is_bare = len(segments) == 1 and not {"segment_type", "allocated_size"} & segments[0].keys()
    return is_bare and bool((events.label > 0).any()) and bool((events.time_us == NO_TIME).all())


def _marks(snapshot: Snapshot, device: Device) -> Iterator[Annotation]:
    """Annotations of PyTorch 2.4, which were events: one frame, START or END with the label as its file."""
    events = device.events
    for at in np.flatnonzero(events.action == USER_DEFINED)[:MAX_MARKS].tolist():
        frames = snapshot.frames(int(events.stack[at]))
        if frames and events.time_us[at] >= 0:
            is_start = frames[0].name == "START"
            yield Annotation(int(events.time_us[at]), is_start, frames[0].filename[:200], device.number)


def _traces(value: object, machine: SnapshotMachine) -> list[Events]:
    if type(value) is not list or len(value) > MAX_DEVICES:
        raise RefusedError("device_traces is not a list with one list per device")
    ranges: list[list[tuple[int, int]]] = []
    for trace in value:
        if type(trace) is not list:
            raise RefusedError("a device trace is not a list")
        mine: list[tuple[int, int]] = []
        for entry in trace:
            if type(entry) is EventRun:
                mine.append((entry.begin, entry.end))
            elif type(entry) is dict:
                index = machine.sink.add(entry, machine.stack_index(entry.get("frames")))
                mine.append((index, index + 1))
            else:
                raise RefusedError("an event is not a dict")
        ranges.append(_joined(mine))
    if sum(end - begin for mine in ranges for begin, end in mine) > machine.sink.count:
        raise RefusedError("the same events are in several places")
    events = machine.sink.events()
    return [events.part(mine) for mine in ranges]


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges with adjacent ones merged."""
    joined: list[tuple[int, int]] = []
    for begin, end in ranges:
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    return joined


def _annotations(value: object) -> list[Annotation]:
    """Annotations in order of time; malformed entries are left out, as they only name phases."""
    found = []
    for entry in value if type(value) is list else []:
        if type(entry) is dict and type(time := entry.get("time_us")) is int and 0 <= time < 1 << 63:
            device = entry.get("device")
            number = device if type(device) is int else None
            found.append(Annotation(time, entry.get("stage") == "START", text_of(entry.get("name"))[:200], number))
    return sorted(found, key=lambda annotation: annotation.time_us)


def _settings(value: object) -> dict[str, str]:
    if type(value) is not dict:
        return {}
    return {
        text_of(key)[:80]: text_of(setting) if type(setting) is str else str(setting)[:80]
        for key, setting in list(value.items())[:100]
        if type(key) is str and type(setting) in (str, int, float, bool)
    }


def _frame(entry: object) -> Frame:
    if type(entry) is not dict:
        raise RefusedError("a frame is not a dict")
    line = entry.get("line")
    name, filename = text_of(entry.get("name")), text_of(entry.get("filename"))
    if filename == "none":
        found = _PROFILER_FRAME.fullmatch(name)
        return Frame(found[3], found[1], int(found[2])) if found else Frame(name, "", 0)
    return Frame(name, filename, line if type(line) is int and 0 <= line < 1 << 31 else 0)
