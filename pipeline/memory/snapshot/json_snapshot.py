"""Allocator snapshots written with `json.dump`, for scripts and viewers that do not read pickles.

The keys are those of the pickle. JSON has no shared values, so every event has a copy of its stack; equal copies become
one object while they are read, as in a pickle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError

_DICT = re.compile(rb"^(?:\xef\xbb\xbf)?\s*\{")
_LIST = re.compile(rb"^(?:\xef\xbb\xbf)?\s*\[\s*\{")
_SEGMENTS = re.compile(rb'"segments"\s*:\s*\[')
_SEGMENT_KEYS = (b'"total_size"', b'"allocated_size"')
_FRAME_KEYS = ("name", "filename", "line")


def is_json_snapshot(head: bytes) -> bool:
    """Whether a file that begins so is a snapshot as JSON: its dict, or the bare list of its segments."""
    is_segment = b'"blocks"' in head and any(key in head for key in _SEGMENT_KEYS)
    if _DICT.match(head):
        return b'"device_traces"' in head or (is_segment and _SEGMENTS.search(head) is not None)
    return is_segment and _LIST.match(head) is not None


def load_json(chunks: Iterable[bytes]) -> tuple[Any, int]:
    """The value, in which equal stacks are one list, and the size of the file in bytes.

    Raises RefusedError for bytes that are not one JSON document.
    """
    data = b"".join(chunks)
    try:
        return json.loads(data.decode("utf-8-sig"), object_hook=_Shared()), len(data)
    except ValueError as error:  # includes numbers of thousands of digits, and bytes that are not UTF-8
        raise RefusedError(f"not JSON to its end: {str(error)[:200]}") from error


class _Shared:
    """Object hook that shares equal frames and stacks; frames are complete before the event that has them."""

    def __init__(self) -> None:
        self._frames: dict[tuple[object, ...], dict[str, Any]] = {}
        self._stacks: dict[tuple[int, ...], list[Any]] = {}

    def __call__(self, value: dict[str, Any]) -> dict[str, Any]:
        if "filename" in value:
            frame = tuple(value.get(key) for key in _FRAME_KEYS)
            is_plain = all(type(part) in (str, int) for part in frame)
            return self._frames.setdefault(frame, value) if is_plain else value
        frames = value.get("frames")
        if type(frames) is list and frames:
            # The first of equal stacks keeps its frames alive, so that no id is used twice.
            value["frames"] = self._stacks.setdefault(tuple(map(id, frames)), frames)
        return value
