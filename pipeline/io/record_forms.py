"""Records of steps out of other arrangements of the same values, as one JSON object per step and line.

- DLLogger's lines, `DLLL {"step": [EPOCH, ITERATION], "data": {...}}` (NVIDIA/dllogger, dllogger/logger.py
  JSONStreamBackend).
- A value per line: objects with the name of a metric, its value and its step, flat or nested (ClearML's and Comet's
  offline messages, many loggers of people's own).
- A document of columns: `{"step": [...], "loss": [...]}` (a Keras history), or of series with steps and values of their
  own (Sacred's metrics.json, sacred/observers/file_storage.py).

Names stay as they are: what they mean is decided where lines are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_DLLOGGER = re.compile(rb"^DLLL \{", re.MULTILINE)
_COLUMNS = re.compile(
    rb'\s*\{\s*"[^"\\]{1,200}"\s*:\s*(?:\[\s*(?:-?[\d.]|NaN|null)|\{\s*"(?:name|steps|timestamps|values)"\s*:)'
)
_NAMES = ("metricName", "metric_name", "metric", "name", "key", "tag")
_VALUES = ("metricValue", "metric_value", "value", "scalar")
_STEPS = ("step", "global_step", "iteration", "iter")
_TIMES = ("timestamp", "time", "wall_time", "ts")
_VARIANT = "variant"
"""ClearML names a value by a metric and its variant: `loss` and `train`."""

Value = tuple[str, float, float, object]
"""Name, value, step and time (None where it has none) of one value."""


def is_dllogger(head: bytes) -> bool:
    """Whether a text has lines of DLLogger's JSON.

    >>> is_dllogger(b'DLLL {"step": 1}'), is_dllogger(b"DLL 2020-11-24 17:11:12 - 1 loss : 2.3")
    (True, False)
    """
    return _DLLOGGER.search(head) is not None


def dllogger_line(line: bytes) -> bytes:
    """A line of DLLogger as an object of its counters and its data, with its line feed; another line as it is.

    >>> dllogger_line(b'DLLL {"type": "LOG", "step": [0, 10], "data": {"loss": 2.5}}')
    b'{"epoch": 0, "step": 10, "loss": 2.5}\\n'
    """
    found = _object(line.removeprefix(b"DLLL ")) if line.startswith(b"DLLL {") else {}
    data = found.get("data")
    if not isinstance(data, dict):
        return line + b"\n"
    time = {"datetime": found["datetime"]} if "datetime" in found else {}
    return _line({**time, **_counters(found.get("step")), **data})


def _counters(step: object) -> dict[str, object]:
    """The counters of a step: a number, or those of epoch and iteration; none of a summary or of parameters."""
    if isinstance(step, list):
        numbers = [one for one in step if isinstance(one, int)]
        return dict(zip(("epoch", "step"), numbers, strict=False))
    return {"step": step} if isinstance(step, int) else {}


def is_of_values(head: bytes) -> bool:
    """Whether a text has an object per line, each with one value of a metric at a step.

    >>> is_of_values(b'{"name": "loss", "value": 2.5, "step": 1}\\n'), is_of_values(b'{"step": 1, "loss": 2.5}\\n')
    (True, False)
    """
    line, end, _ = head.lstrip().partition(b"\n")
    return bool(end) and _value(_object(line)) is not None


def lines_of_values(text: bytes) -> bytes:
    """The values of such a text by step, as lines; the text itself where a line holds something else."""
    values: list[Value] = []
    for line in text.splitlines(keepends=True):
        found = _value(_object(line))
        if found is None and line.strip() and line.endswith(b"\n"):
            return text
        values += [found] if found else []
    return b"".join(map(_line, _by_step(values)))


def _value(found: Mapping[str, Any]) -> Value | None:
    """The value that an object holds; None for one that holds another thing."""
    flat = _flat(found)
    name = next((flat[key] for key in _NAMES if isinstance(flat.get(key), str)), None)
    value = _number(flat, _VALUES)
    step = _number(flat, _STEPS)
    if name is None or value is None or step is None:
        return None
    if isinstance(variant := flat.get(_VARIANT), str) and variant != name:
        name = f"{variant}/{name}"
    return name, value, step, next((flat[key] for key in _TIMES if key in flat), None)


def _number(found: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    value = next((found[key] for key in keys if found.get(key) is not None), None)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the members of those within it; what is outside counts more."""
    inner: dict[str, Any] = {}
    for value in found.values():
        if isinstance(value, dict):
            inner |= _flat(value)
    return inner | {key: value for key, value in found.items() if not isinstance(value, dict)}


def is_of_columns(head: bytes) -> bool:
    """Whether a text begins like a document of columns, or of series with steps of their own.

    >>> is_of_columns(b'{"loss": [2.5, 2.4]}'), is_of_columns(b'{"loss": {"steps": [1'), is_of_columns(b'{"loss": 2.5}')
    (True, True, False)
    """
    return _COLUMNS.match(head) is not None


def lines_of_columns(text: bytes) -> bytes:
    """The rows of such a document, as lines; the text itself where it holds something else."""
    found = _object(text)
    series = [(name, _series(one)) for name, one in found.items()]
    if found and all(one for _, one in series):
        values = [(name, *each) for name, one in series if one for each in one]
        return b"".join(map(_line, _by_step(values)))
    columns = {name: one for name, one in found.items() if isinstance(one, list) and all(map(_is_number, one))}
    heights = {len(one) for one in columns.values()}
    if (
        not columns
        or len(heights) != 1
        or any(isinstance(one, list | dict) for one in (found[n] for n in found.keys() - columns))
    ):
        return text
    return b"".join(_line(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def _series(found: object) -> list[tuple[float, float, object]] | None:
    """Value, step and time of each value of a series; None for another thing."""
    if not isinstance(found, dict):
        return None
    steps, values = found.get("steps"), found.get("values")
    if not isinstance(steps, list) or not isinstance(values, list) or len(steps) != len(values):
        return None
    times = found.get("timestamps")
    times = times if isinstance(times, list) and len(times) == len(steps) else [None] * len(steps)
    if not all(map(_is_number, steps)):
        return None
    return [(value, step, time) for value, step, time in zip(values, steps, times, strict=True) if _is_number(value)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _by_step(values: Iterable[Value]) -> Iterator[dict[str, object]]:
    """A record per step, in the order of steps; a step that a name has again begins a record of its own, behind all
    records before: it was started anew.
    """
    records: dict[tuple[int, float], dict[str, object]] = {}
    seen: dict[tuple[str, float], int] = {}
    for name, value, step, time in values:
        launch = seen.get((name, step), 0)
        seen[name, step] = launch + 1
        whole = int(step) if float(step).is_integer() else step
        record = records.setdefault(
            (launch, step), {**({"timestamp": time} if time is not None else {}), "step": whole}
        )
        record[name] = value
    for key in sorted(records):
        yield records[key]


def _line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
