"""UTF-8 bytes of a log from the bytes of a file: other encodings, and envelopes of Docker and JSON loggers."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sweepscope.pipeline.errors import InputError

SNIFF_BYTES = 8192

HOLE = b"\r\0\r"
"""What `Holes.filled` puts in the place of a hole: a line with it shows the text on both sides as two redraws."""

_HOLE = re.compile(rb"\0{64,}")
_LEAST_HOLE = b"\0" * 64

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
_CHINESE = re.compile(rb"(?:[\xb0-\xd7][\xa1-\xfe]|[\xa1-\xa3][\xa1-\xfe])")
"""Of GB 2312, which GB 18030 contains: the commoner half of the characters, and signs."""
_MOSTLY = 0.9
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass
class Holes:
    """Runs of NUL bytes within a log: parts that a crashed node had not written, or that a sparse copy lacks.

    Attributes:
        position: offset in the unpacked file of the next chunk.
        found: offset and bytes of each hole.
    """

    position: int = 0
    found: list[tuple[int, int]] = field(default_factory=list)
    _leading: int = 0

    def filled(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Chunks with HOLE for each hole. NULs at the beginning of the file stay: `text_chunks` removes them."""
        for chunk in chunks:
            start, self.position = self.position, self.position + len(chunk)
            if _LEAST_HOLE not in chunk:
                yield chunk
                continue
            leading = len(chunk) - len(chunk.lstrip(b"\0")) if start == self._leading else 0
            self._leading += leading
            if text := chunk[:leading] + _HOLE.sub(partial(self._note, start + leading), chunk[leading:]):
                yield text

    def _note(self, start: int, hole: re.Match[bytes]) -> bytes:
        offset, size = start + hole.start(), len(hole[0])
        if self.found and sum(self.found[-1]) == offset:  # it began in the chunk before
            self.found[-1] = (self.found[-1][0], self.found[-1][1] + size)
            return b""
        self.found.append((offset, size))
        return HOLE


def text_chunks(path: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks of a log as UTF-8, or nearly so.

    - NULs at the beginning are left out: a log rotated by copy-and-truncate under an open writer starts with a hole.
    - UTF-16 with a byte order mark (PowerShell's `>`) is transcoded, and so is GB 18030 (Windows in Chinese).
    - Docker's records of a container's output (`<id>-json.log`) become the lines that the container wrote.
    - JSON objects with a message and a time, one per line, become the messages.

    Raises:
        InputError: the file is binary; nothing has been yielded then.
    """
    stream = iter(chunks)
    first = b""
    while len(first) < SNIFF_BYTES and (chunk := next(stream, b"")):
        first = (first + chunk).lstrip(b"\0")
    if is_utf16(first[:SNIFF_BYTES]):
        yield from _utf8(_UTF16[first[:2]], first[2:], stream)
    elif is_gb18030(first[:SNIFF_BYTES]):
        yield from _utf8("gb18030", first, stream)
    elif is_binary(first[:SNIFF_BYTES]) or (HOLE in first and b"\n" not in first):
        raise InputError(f"{path} is a binary file, not a log. Leave it out, or give the text log.")
    elif is_container_log(first[:SNIFF_BYTES]):
        yield from _unpacked(itertools.chain([first], stream), _text_of)
    elif is_message_log(first[:SNIFF_BYTES]):
        yield from _unpacked(itertools.chain([first], stream), _message_of)
    elif first:
        yield first
        yield from stream


def is_utf16(head: bytes) -> bool:
    """Whether a text begins with the byte order mark of UTF-16 and has the zeros of ASCII in it.

    A binary file may begin with the mark by chance.
    """
    return head[:2] in _UTF16 and head.count(0) > 0.2 * len(head)


def is_gb18030(head: bytes) -> bool:
    """Whether a text is in Chinese characters as Windows writes them.

    >>> is_gb18030("损失: 2.31".encode("gb18030")), is_gb18030("损失: 2.31".encode()), is_gb18030(b"\\xe9t\\xe9 2.31")
    (True, False, False)
    """
    if head.isascii():
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        high = sum(byte >= 0x80 for byte in head)
        return 2 * len(_CHINESE.findall(head)) >= _MOSTLY * high
    return False


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


def may_be_transcoded(head: bytes) -> bool:
    """Whether `text_chunks` may yield other bytes than the file's, so that offsets differ."""
    return is_utf16(head) or is_gb18030(head) or head.lstrip().startswith(b'{"')


def is_binary(head: bytes) -> bool:
    """Whether bytes have a known magic number, or too many control bytes or bytes that are not UTF-8.

    Stray NULs and a few undecodable bytes are not enough: logs of many ranks have both.

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
    """Texts of a log's objects. Docker splits lines after 16 KiB; they are joined again.

    Lines that are no objects, or exceed _MOST_OBJECT_BYTES, stay as they are.
    """
    partial = b""
    for chunk in chunks:
        *whole, partial = (partial + chunk).split(b"\n")
        yield b"".join(map(text_of, whole))
        if len(partial) > _MOST_OBJECT_BYTES:
            yield partial
            partial = b""
    if partial:
        yield text_of(partial)


def _text_of(line: bytes) -> bytes:
    """The text that a container wrote, with its line feed."""
    text = _object(line).get("log")
    return text.encode("utf-8", errors="replace") if isinstance(text, str) else line + b"\n"


def _message_of(line: bytes) -> bytes:
    """The message as lines, after its time where it shows none itself."""
    found = _object(line)
    text = _message(found)
    if text is None:
        return line + b"\n"
    time = _TIME.fullmatch(next((found[key] for key in _TIMES if isinstance(found.get(key), str)), ""))
    if time and not _CLOCK.search(text):
        text = f"{time[1]}T{time[2].replace(',', '.')}Z {text}"
    return text.rstrip("\n").encode("utf-8", errors="replace") + b"\n"


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
    payload = found.get("jsonPayload")  # Google Cloud's, where the message was an object itself
    return found | payload if isinstance(payload, dict) else found


def _utf8(encoding: str, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first).encode("utf-8", errors="replace")
    for chunk in rest:
        yield decoder.decode(chunk).encode("utf-8", errors="replace")
    yield decoder.decode(b"", final=True).encode("utf-8", errors="replace")
