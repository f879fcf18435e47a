"""UTF-8 bytes of a log from the bytes of a file: other encodings, holes, and what was wrapped around its lines."""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.io.log_envelopes import envelope
from sweepscope.pipeline.io.terminal_lines import unbroken, window_width

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
    - What container platforms and collectors have wrapped around lines is taken off (`log_envelopes`).
    - Lines that a terminal has broken are joined (`terminal_lines`).

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
    elif unpack := envelope(first[:SNIFF_BYTES]):
        yield from unpack(itertools.chain([first], stream))
    elif first and (width := window_width(first[:SNIFF_BYTES])):
        yield from unbroken(itertools.chain([first], stream), width)
    elif first:
        yield first
        yield from stream


def without_utf16(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks of any file; those of a text in UTF-16 with a byte order mark (PowerShell's `>`) as UTF-8.

    >>> b"".join(without_utf16(["step,loss".encode("utf-16")])), b"".join(without_utf16([b"\\xff\\xfe", b"ab"]))
    (b'step,loss', b'\\xff\\xfeab')
    """
    stream = iter(chunks)
    first = next(stream, b"")
    while 0 < len(first) < SNIFF_BYTES and (chunk := next(stream, b"")):
        first += chunk
    if is_utf16(first[:SNIFF_BYTES]):
        yield from _utf8(_UTF16[first[:2]], first[2:], stream)
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


def may_be_transcoded(head: bytes) -> bool:
    """Whether `text_chunks` may yield other bytes than the file's, so that offsets differ."""
    is_wrapped = head.lstrip().startswith(b'{"') or envelope(head) is not None
    return is_utf16(head) or is_gb18030(head) or is_wrapped or window_width(head) is not None


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


def _utf8(encoding: str, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first).encode("utf-8", errors="replace")
    for chunk in rest:
        yield decoder.decode(chunk).encode("utf-8", errors="replace")
    yield decoder.decode(b"", final=True).encode("utf-8", errors="replace")
