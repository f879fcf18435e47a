"""TensorBoard event files (`events.out.tfevents.*`): scalars by step and tag.

Formats: tensorboard/compat/proto event.proto (Event: wall_time = 1, step = 2, summary = 5), summary.proto
(Summary.Value: tag = 1, simple_value = 2, tensor = 8), tensor.proto (dtype = 1, tensor_content = 4, float_val = 5,
double_val = 6). torch's and tensorboardX's writers keep `simple_value`, TensorFlow 2 a tensor without dimensions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun
from sweepscope.pipeline.text import protobuf_wire as wire
from sweepscope.pipeline.text.record_framing import tf_records

_FLOAT, _DOUBLE = 1, 2  # tensorflow DataType


def read(data: bytes) -> TrackedRun:
    """The run of one event file; events of one step that follow each other are a row.

    Raises ValueError for a file of another format.
    """
    rows: list[Row] = []
    gathered: dict[str, float] = {}
    key: tuple[int, float] | None = None
    for payload in tf_records(data):
        seconds, step, scalars = _event(payload)
        if not scalars:
            continue
        if key is not None and (step != key[0] or not gathered.keys().isdisjoint(scalars)):
            rows.append(Row(len(rows) + 1, key[0], key[1], gathered))
            gathered = {}
        if not gathered:
            key = (step, seconds)
        gathered = gathered | scalars
    if key is not None and gathered:
        rows.append(Row(len(rows) + 1, key[0], key[1], gathered))
    return TrackedRun(rows)


def _event(payload: bytes) -> tuple[float, int, dict[str, float]]:
    """Time in seconds since 1970, step and scalars of an event. Raises ValueError for another message."""
    seconds, step = math.nan, 0
    scalars: dict[str, float] = {}
    for number, value in wire.fields(payload):
        if number == 1:
            seconds = wire.as_double(value)
        elif number == 2:
            step = wire.signed(value)
        elif number == 5:
            scalars.update(_scalars(wire.as_bytes(value)))
    return seconds, step, scalars


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    for number, value in wire.fields(summary):
        if number != 1:
            continue
        tag, scalar = "", None
        for part, content in wire.fields(wire.as_bytes(value)):
            if part == 1:
                tag = wire.as_text(content)
            elif part == 2:
                scalar = wire.as_float(content)
            elif part == 8:
                scalar = _tensor(wire.as_bytes(content))
        if scalar is not None:
            yield tag, scalar


def _tensor(tensor: bytes) -> float | None:
    """The one number of a tensor without dimensions; None for any other."""
    kind, content, found = 0, b"", None
    for number, value in wire.fields(tensor):
        if number == 1:
            kind = wire.as_number(value)
        elif number == 2 and any(part == 2 for part, _ in wire.fields(wire.as_bytes(value))):
            return None  # it has dimensions: a histogram, a text or an image
        elif number == 4:
            content = wire.as_bytes(value)
        elif number in (5, 6) and isinstance(value, bytes):
            size = 4 if number == 5 else 8
            found = struct.unpack("<f" if number == 5 else "<d", value[:size])[0] if len(value) >= size else None
    if content and kind in (_FLOAT, _DOUBLE):
        size = 4 if kind == _FLOAT else 8
        return float(struct.unpack("<f" if kind == _FLOAT else "<d", content)[0]) if len(content) == size else None
    return found
