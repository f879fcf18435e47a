"""Is this text? Bytes of a file to UTF-8 bytes of a log, or a refusal. Interprets nothing else."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sweepscope.pipeline.errors import InputError

SNIFF_BYTES = 8192

_MAGIC = (
    b"\x7fELF",
    b"\x89PNG",
    b"PK\x03\x04",
    b"%PDF",
    b"\x80\x02",
    b"\x80\x03",
    b"\x80\x04",
    b"\x80\x05",
    b"\x93NUMPY",
    b"SQLite",
    b"PAR1",
    b"GIF8",
    b"\xff\xd8\xff",
)
# Control bytes apart from tab, line ends, form feed, backspace, bell, escape; NULs are counted apart.
_STRANGE = bytes(set(range(1, 0x20)) - set(b"\t\n\r\x0b\x0c\x1b\x08\x07"))
# Docker's json-file driver (daemon/logger/jsonfilelog): one object per line that a container wrote, its text first.
_CONTAINER = re.compile(rb'\{"log": ?"')
_CONTAINER_KEYS = (b'"stream":', b'"time":')
# One object per line that a logger or a collector wrote: python-json-logger and structlog, Google Cloud (textPayload),
# Fluent Bit and Vector (log, message), CloudWatch's export. With a metric in it, it is not a message in an envelope.
_MESSAGES = ("message", "msg", "log", "textPayload", "text")
_TIMES = ("timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "receiveTimestamp")
_METRIC = re.compile(r"(?:.*[_/.])?(?:step|iteration|iter|epoch|loss)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_MOST_OBJECT_BYTES = 16 << 20
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def text_chunks(path: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a log as UTF-8 or something that is mostly so.

    A hole of NULs at the beginning is left out: a log that was rotated by copy-and-truncate under an open writer starts
    with one. UTF-16 with its byte order mark (what PowerShell's `>` writes) is transcoded, and of what Docker keeps of
    a container's output (`<id>-json.log`) the lines are what the container wrote. Of a log of objects, each with a
    message and its time, the lines are the messages.

    Raises:
        InputError: the file is binary; nothing has been yielded then.
    """
    stream = iter(chunks)
    first = b""
    while len(first) < SNIFF_BYTES and (chunk := next(stream, b"")):
        first = (first + chunk).lstrip(b"\0")
    if is_utf16(first[:SNIFF_BYTES]):
        yield from _utf8(_UTF16[first[:2]], first[2:], stream)
    elif is_binary(first[:SNIFF_BYTES]):
        raise InputError(f"{path} is a binary file, not a log. Leave it out, or give the text log.")
    elif is_container_log(first[:SNIFF_BYTES]):
        yield from _unpacked(itertools.chain([first], stream), _text_of)
    elif is_message_log(first[:SNIFF_BYTES]):
        yield from _unpacked(itertools.chain([first], stream), _message_of)
    elif first:
        yield first
        yield from stream


def is_utf16(head: bytes) -> bool:
    """Whether a text begins with the mark of UTF-16. Half the bytes of ASCII are zeros in it.

    A binary file may begin with the mark by chance.
    """
    return head[:2] in _UTF16 and head.count(0) > 0.2 * len(head)


def is_container_log(head: bytes) -> bool:
    """Whether a text is what Docker keeps of a container's output.

    >>> is_container_log(b'{"log":"step 1\\\\n","stream":"stdout","time":"2025-05-16T16:39:51.2Z"}')
    True
    """
    return _CONTAINER.match(head) is not None and any(key in head for key in _CONTAINER_KEYS)


def is_message_log(head: bytes) -> bool:
    """Whether a text is a log of objects, one per line, each of which wraps a message and says when it was written.

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


def may_be_transcoded(head: bytes) -> bool:
    """Whether `text_chunks` may yield other bytes than the file's, so that no place in them is one in the file."""
    return is_utf16(head) or head.lstrip().startswith(b'{"')


def is_binary(head: bytes) -> bool:
    """Known magic, or too many bytes that no log prints: control bytes, or bytes that are not UTF-8.

    Stray NULs and a few undecodable bytes are not enough: logs of many ranks hold both.

    >>> is_binary(b"step: 1\\x00\\xff"), is_binary(bytes(range(256)))
    (False, True)
    """
    if head.startswith(_MAGIC):
        return True
    strange = len(head) - len(head.translate(None, _STRANGE))
    undecodable = head.decode("utf-8", errors="replace").count("\ufffd")
    size = len(head)
    return strange > size / 10 or head.count(0) > size / 2 or undecodable > size * 0.3


def _unpacked(chunks: Iterable[bytes], text_of: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The texts of a log's objects. A line that Docker cut, as it does after 16 KiB, is whole again; what is no object
    stays as it is, and so does a line that is too long to be held."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield b"".join(map(text_of, whole))
        if len(rest) > _MOST_OBJECT_BYTES:
            yield rest
            rest = b""
    if rest:
        yield text_of(rest)


def _text_of(line: bytes) -> bytes:
    """What a container wrote: a line feed is part of it."""
    text = _object(line).get("log")
    return text.encode("utf-8", errors="replace") if isinstance(text, str) else line + b"\n"


def _message_of(line: bytes) -> bytes:
    """The message as lines of their own, behind its time where it shows none itself."""
    found = _object(line)
    text = _message(found)
    if text is None:
        return line + b"\n"
    time = _TIME.fullmatch(next((found[key] for key in _TIMES if isinstance(found.get(key), str)), ""))
    if time and not _CLOCK.search(text):
        text = f"{time[1]}T{time[2].replace(',', '.')}Z {text}"
    return text.rstrip("\n").encode("utf-8", errors="replace") + b"\n"


def _message(found: Mapping[str, Any]) -> str | None:
    """None of an object that holds more than a message, and so must stay whole."""
    if any(map(_METRIC.fullmatch, found)):
        return None
    texts = (found[key] for key in _MESSAGES if isinstance(found.get(key), str))
    return next(texts, None)


def _object(line: bytes) -> Mapping[str, Any]:
    """The object of a line; an empty one for any other line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    payload = found.get("jsonPayload")  # Google Cloud's, of what was an object already
    return found | payload if isinstance(payload, dict) else found


def _utf8(encoding: str, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first).encode("utf-8", errors="replace")
    for chunk in rest:
        yield decoder.decode(chunk).encode("utf-8", errors="replace")
    yield decoder.decode(b"", final=True).encode("utf-8", errors="replace")
