"""Lines of a log out of what a container platform or a collector wraps around them.

- Docker's json-file driver (daemon/logger/jsonfilelog): one object per line that a container wrote, its text first.
- One JSON object per line: python-json-logger and structlog, Google Cloud (`textPayload`), Fluent Bit and Vector
  (`log`, `message`), Loki's logcli (`line`), `journalctl -o json` (`MESSAGE`; systemd's Journal Export Formats).
- A JSON array of such objects: `gcloud logging read --format=json`, the download of Google Cloud's log explorer.
- A table of times and messages: the exports of CloudWatch, Kibana, Grafana and Datadog.

Collectors show the newest line first unless asked otherwise; the lines of such a file are turned round. Objects and
tables with metrics are no messages in an envelope: an array of such objects becomes one object per line, and so do
other arrangements of steps (`record_forms`).
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import factorial
from typing import Any

from sweepscope.pipeline.io.notebook import is_notebook, lines_of_notebook
from sweepscope.pipeline.io.record_forms import (
    dllogger_line,
    is_dllogger,
    is_of_columns,
    is_of_values,
    lines_of_columns,
    lines_of_values,
)

_CONTAINER = re.compile(rb'\{"log": ?"')
_CONTAINER_KEYS = (b'"stream":', b'"time":')
_MESSAGES = ("message", "@message", "msg", "log", "textPayload", "text", "line", "content", "MESSAGE")
_TIMES = (
    *("timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "date", "receiveTimestamp", "ingestionTime"),
    *("eventtime", "__REALTIME_TIMESTAMP"),
)
_PAYLOADS = ("jsonPayload", "content", "_source")
"""Objects within an object: Google Cloud's where the message was one itself, Datadog's, Elasticsearch's."""
_EVENTS = re.compile(rb'\s*\{\s*"(?:events|entries|hits|logs)"\s*:\s*(?=\[\s*\{)')
"""An array within an object, as of `aws logs get-log-events`."""
_METRIC = re.compile(r"(?:.*[_/.])?(?:step|iteration|iter|epoch|loss)")
_OF_DATA = ("text", "content")
"""Messages of records that may as well be documents with a date (C4's)."""
_STEP = re.compile(r"(?:train(?:ing)?[/._])?(?:global_?|_)?(?:step|iteration|iter)")
_LOSS = re.compile(r"(?:.*[_/.])?loss")
_IS_NO_COUNTER = re.compile(r"(?i)(?:.*[_/.])?(?:id|idx|index|time|timestamp|ts|t|seed|offset)")
"""Of names of whole numbers that rise from record to record, those that data have, too."""
_OF_RUNS = re.compile(r"(?i)(?:dp|tp|pp|cp|ep|mbs|gas|gbs|zero_stage|(?:num|n)_(?:gpus|nodes)|job_?id|run_?id|run_dir)")
"""Names of what differs from run to run, and from step to step does not."""
_CHANCE = 0.5
"""The most of so many whole numbers that may be expected to rise through all records by chance."""
_MOST_RISE = 0.8
"""Of the steps of records: one in five may begin anew."""
_LEAST_RECORDS = 3
_MOST_CHARS = 200
"""Of a value; a longer one is a text that a training reads or writes."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?")
_EPOCH_MS, _EPOCH_US = re.compile(r"1[4-9]\d{11}"), re.compile(r"1[4-9]\d{14}")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_MOST_OBJECT_BYTES = 16 << 20
_MOST_WHOLE_BYTES = 256 << 20
"""Of a file that can only be read as a whole; a collector's export has ten thousand lines."""


def envelope(head: bytes) -> Callable[[Iterable[bytes]], Iterator[bytes]] | None:
    """What unpacks the chunks of a text that begins so; None for a text that is in no envelope.

    Docker splits lines after 16 KiB; they are joined again. What is no object of the envelope stays as it is.
    """
    if is_message_log(head) and not is_container_log(head):
        is_turned = _is_newest_first([_time(_object(line)) for line in head.split(b"\n")[:-1]])
        return lambda chunks: _unpacked(_turned(chunks) if is_turned else chunks, _message_of)
    if is_container_log(head):
        return lambda chunks: _unpacked(chunks, _container_lines())
    if is_dllogger(head):
        return partial(_unpacked, text_of=dllogger_line)
    if is_array(head):
        return _lines_of_array
    if rearrange := _arrangement(head):
        return partial(_rearranged, rearrange=rearrange)
    return _lines_of_table if is_message_table(head) else None


def _arrangement(head: bytes) -> Callable[[bytes], bytes] | None:
    """What makes a line per step of a text with another arrangement of values; None for a text with none."""
    if is_of_values(head):
        return lines_of_values
    if is_notebook(head):
        return lines_of_notebook
    return lines_of_columns if is_of_columns(head) else None


def _rearranged(chunks: Iterable[bytes], rearrange: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """A line per step; a text that is too large to be read at once stays as it is."""
    text, rest = _whole(chunks)
    more = next(rest, b"")
    yield from (text, more, *rest) if more else (rearrange(text),)


def is_container_log(head: bytes) -> bool:
    """Whether a text is Docker's record of a container's output.

    >>> is_container_log(b'{"log":"step 1\\\\n","stream":"stdout","time":"2025-05-16T16:39:51.2Z"}')
    True
    """
    return _CONTAINER.match(head) is not None and any(key in head for key in _CONTAINER_KEYS)


def is_message_log(head: bytes) -> bool:
    """Whether a text has JSON objects, one per line, each with a message and a time.

    >>> is_message_log(b'{"asctime": "2025-05-01 12:00:00", "levelname": "INFO", "message": "step: 1"}\\n')
    True
    >>> is_message_log(b'{"time": 1.5, "step": 1, "loss": 2.5}\\n'), is_message_log(b'{"message": "step: 1", "time')
    (False, False)
    """
    line, end, _ = head.lstrip().partition(b"\n")
    if not end or not line.startswith(b'{"'):
        return False
    found = _object(line)
    return _message(found) is not None and any(key in found for key in _TIMES)


def is_array(head: bytes) -> bool:
    """Whether a text is a JSON array of objects.

    >>> is_array(b'[\\n  {"message": "step: 1"'), is_array(b"[2026-01-01 10:00:00] step 1")
    (True, False)
    >>> is_array(b'{"events": [{"timestamp": 1763600000000, "message": "a"'), is_array(b'{"events": [{"name": "x"')
    (True, False)
    """
    array = _EVENTS.sub(b"", head, count=1) if _EVENTS.match(head) else head
    return re.match(rb'\s*\[\s*\{\s*"', array) is not None and (array is head or b'"message"' in head)


def is_message_table(head: bytes) -> bool:
    """Whether a text is a table with a column of times and one of messages, and none of metrics.

    >>> is_message_table(b"timestamp,message\\n1763600000000,step 1\\n"), is_message_table(b"time,step,text\\n")
    (True, False)
    """
    line, end, _ = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    line = line.removesuffix(b"\r")
    if not end or not line.isascii() or b"," not in line or b"\r" in line:  # a bar that is redrawn
        return False
    return _columns(next(csv.reader([line.decode()]), [])) is not None


def is_of_training(head: bytes) -> bool:
    """Whether records that begin so are a log's messages or a training's steps, and no data or a lone result."""
    if is_message_log(head):
        return _first_two(head)[0].keys().isdisjoint(_OF_DATA)
    if is_dllogger(head) or _arrangement(head):
        return True
    is_rising = _is_rising(head) or _rises_with_losses(head) or _begins_anew(head)
    return is_rising or is_container_log(head) or is_array(head)


def has_losses(head: bytes) -> bool:
    """Whether records that begin so are of steps that rise, each with a number that is called a loss.

    >>> has_losses(b'{"step": 1, "loss": 2.5}\\n{"step": 2, "loss": 2.4}\\n')
    True
    >>> has_losses(b'{"step": 1, "answer": "7"}\\n{"step": 2, "answer": "8"}\\n')
    False
    """
    first, _ = _first_two(head)
    is_named = any("loss" in name and isinstance(value, int | float) for name, value in first.items())
    return is_named and _is_rising(head)


def _first_two(head: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    first, _, others = head.lstrip().partition(b"\n")
    return _object(first), _object(others.partition(b"\n")[0])


def _is_rising(head: bytes) -> bool:
    """Whether of some records those of steps rise; what is no step, such as the begin of a run, may stand between."""
    whole = head.lstrip().split(b"\n")
    counts = [count for line in (whole) if (count := _count(_object(line))) is not None]
    return (
        len(counts) > 1
        and all(before <= after for before, after in itertools.pairwise(counts))
        and (counts[0] < counts[-1])
    )


def _rises_with_losses(head: bytes) -> bool:
    """Whether records hold a loss, at any depth, and a whole number that rises from each to the next, by any name.

    >>> _rises_with_losses(b'{"cfg": {}}\\n' + b"".join(b'{"n": %d, "m": {"loss": 2.5}}\\n' % at for at in range(3)))
    True
    """
    each = [dict(_leaves(_object(line))) for line in head.lstrip().split(b"\n")[:-1]]
    losses = [one for one in each if any(_LOSS.fullmatch(name) and isinstance(one[name], float) for name in one)]
    if len(losses) < _LEAST_RECORDS or any(len(str(value)) > _MOST_CHARS for one in losses for value in one.values()):
        return False
    differing = (name for name in losses[0] if len({str(one.get(name)) for one in losses}) > 1)
    if any(_OF_RUNS.fullmatch(name) for name in differing):
        return False
    names = [name for name, value in losses[0].items() if type(value) is int and not _IS_NO_COUNTER.fullmatch(name)]
    if len(names) > _CHANCE * factorial(len(losses)):
        return False
    rows = ([one.get(name) for one in losses] for name in names)
    return any(
        all(type(before) is type(after) is int and before < after for before, after in itertools.pairwise(row))
        for row in rows
    )


def _begins_anew(head: bytes) -> bool:
    """Whether records of steps with a loss rise but for a few, where another start has written to the same file.

    >>> rows = [b'{"step": %d, "train": {"loss": 2.5}}\\n' % step for step in (0, 10, 20, 30, 10, 20, 30, 40)]
    >>> _begins_anew(b"".join(rows)), _begins_anew(b"".join(rows[::-1]))
    (True, False)
    """
    records = [_object(line) for line in head.lstrip().split(b"\n")]
    steps = [
        count
        for one in records
        if (count := _count(one)) is not None
        and any(_LOSS.fullmatch(name) and isinstance(value, float) for name, value in _leaves(one))
    ]
    rises = sum(before < after for before, after in itertools.pairwise(steps))
    return len(steps) >= _LEAST_RECORDS and rises >= _MOST_RISE * (len(steps) - 1)


def _leaves(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Last names of the values of an object that are none themselves, and the values."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield name, value


def _count(found: Mapping[str, Any]) -> float | None:
    """The number of the step that an object is of, at any depth; what counts the last step of a run is none."""
    counts = [value for name, value in found.items() if _STEP.fullmatch(name) and isinstance(value, int | float)]
    inner = (_count(value) for value in found.values() if isinstance(value, dict))
    return counts[0] if counts else next((count for count in inner if count is not None), None)


def _columns(header: Sequence[str]) -> tuple[int, int] | None:
    """Positions of the time and the message in a table's header."""
    names = [name.strip().lower() for name in header]
    if any(map(_METRIC.fullmatch, names)):
        return None
    time, message = (
        next((at for at, name in enumerate(names) if name in wanted), None) for wanted in (_TIMES, _MESSAGES)
    )
    return None if time is None or message is None else (time, message)


def _unpacked(chunks: Iterable[bytes], text_of: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Texts of a log's objects. Lines that are no objects, or exceed _MOST_OBJECT_BYTES, stay as they are."""
    partial = b""
    for chunk in chunks:
        *whole, partial = (partial + chunk).split(b"\n")
        yield b"".join(map(text_of, whole))
        if len(partial) > _MOST_OBJECT_BYTES:
            yield partial
            partial = b""
    if partial:
        yield text_of(partial)


def _lines_of_array(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The elements of a JSON array, each as a line; chunks of another text as they are."""
    text, rest = _whole(chunks)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        yield text
        yield from rest
        return
    if isinstance(found, dict):
        found = next(value for value in found.values() if isinstance(value, list))
    objects = [item if isinstance(item, dict) else {} for item in found]
    lines = [_line_of(item, json.dumps(item).encode()) for item in objects]
    yield b"".join(reversed(lines) if _is_newest_first(map(_time, objects)) else lines)


def _lines_of_table(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The messages of a table, after their times; chunks of another text as they are."""
    text, rest = _whole(chunks)
    rows = csv.reader(io.StringIO(text.decode("utf-8-sig", "replace"), newline=""))
    try:
        time, message = _columns(next(rows)) or (0, 0)
        wide = [row for row in rows if len(row) > max(time, message)]
    except csv.Error:
        wide = []
    if not wide:
        yield text
        yield from rest
        return
    lines = [_stamped(row[time], row[message]) for row in wide]
    yield b"".join(reversed(lines) if _is_newest_first(row[time] for row in wide) else lines)
    yield from rest


def _whole(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Chunks joined, as many as may be read at once, and the others."""
    stream, joined, size = iter(chunks), [], 0
    for chunk in stream:
        joined.append(chunk)
        size += len(chunk)
        if size > _MOST_WHOLE_BYTES:
            break
    return b"".join(joined), stream


def _turned(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines in the opposite order."""
    text, rest = _whole(chunks)
    yield b"".join(line + b"\n" for line in reversed(text.removesuffix(b"\n").split(b"\n")))
    yield from rest


def _is_newest_first(times: Iterable[str]) -> bool:
    """Whether times fall, and never rise: they compare as texts, since all are of one form."""
    known = [time for time in times if time]
    return any(a > b for a, b in itertools.pairwise(known)) and all(a >= b for a, b in itertools.pairwise(known))


def _container_lines() -> Callable[[bytes], bytes]:
    """The texts that a container wrote, with their line feeds, after their times where they show none themselves."""
    is_begin = True

    def text_of(line: bytes) -> bytes:
        nonlocal is_begin
        found = _object(line)
        text = found.get("log")
        if not isinstance(text, str):
            return line + b"\n"
        is_line = is_begin and text.endswith("\n") and "\r" not in text.rstrip("\r\n")  # and no bar that is redrawn
        is_begin = text.endswith("\n")
        return _stamped(_time(found), text) if is_line else text.encode("utf-8", errors="replace")

    return text_of


def _message_of(line: bytes) -> bytes:
    """The message of an object as lines, after its time where it shows none itself."""
    return _line_of(_object(line), line)


def _line_of(found: Mapping[str, Any], line: bytes) -> bytes:
    text = _message(found)
    return line + b"\n" if text is None else _stamped(_time(found), text)


def _time(found: Mapping[str, Any]) -> str:
    return next((str(found[key]) for key in _TIMES if isinstance(found.get(key), str | int)), "")


def _stamped(time: str, text: str) -> bytes:
    """A message with its line feed, behind its time where it shows none."""
    if _EPOCH_US.fullmatch(time):
        time = time[:-3]
    if _EPOCH_MS.fullmatch(time):
        time = datetime.fromtimestamp(int(time) / 1000, UTC).isoformat()
    stamp = _TIME.match(time)
    if stamp and not _CLOCK.search(text):
        text = f"{stamp[1]}T{stamp[2].replace(',', '.')}Z {text}"
    return text.rstrip("\r\n").encode("utf-8", errors="replace") + b"\n"


def _message(found: Mapping[str, Any]) -> str | None:
    """The message of an object; None for one with metrics, which must stay whole."""
    if any(map(_METRIC.fullmatch, found)):
        return None
    texts = (found[key] for key in _MESSAGES if isinstance(found.get(key), str))
    return next(texts, None)


def _object(line: bytes) -> Mapping[str, Any]:
    """The JSON object of a line; an empty one for other lines."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    payload = next((found[name] for name in _PAYLOADS if isinstance(found.get(name), dict)), None)
    return found if payload is None else found | payload
