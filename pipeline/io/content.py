"""What a file holds, whatever its name and compression: its decompressed size, and a fingerprint of its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from sweepscope.pipeline.io import stream
from sweepscope.pipeline.io.stream import DamagedStream, HashedStream, decompressed, is_packed, resume_point_bytes

HEAD_SIZES = tuple(64 << n for n in range(11))
"""Sizes in bytes of the beginnings of a content that `Content.head` has a digest of, as far as it reaches."""

HEAD_DIGITS = 8


@dataclass(frozen=True)
class Content:
    """Identity of the bytes of a file.

    Attributes:
        size: their number.
        digest: `stream.ResumePoint.digest` at their end.
        head: HEAD_DIGITS hex digits for each of HEAD_SIZES. That of a file which begins with these bytes begins alike.
    """

    size: int
    digest: str
    head: str


@dataclass
class ContentTracker:
    """Content of a stream from its chunks: keeps its first and last FINGERPRINT_BYTES."""

    size: int = 0
    first: bytes = b""
    last: bytes = b""

    def add(self, chunk: bytes) -> None:
        """Append a chunk."""
        width = stream.FINGERPRINT_BYTES
        if self.size < width:
            self.first += chunk[: width - self.size]
        self.size += len(chunk)
        self.last = chunk[-width:] if len(chunk) >= width else (self.last + chunk)[-width:]

    def content(self) -> Content:
        """Content of what was added."""
        return Content(self.size, _digest(self.first, self.last), heads(self.first))


def heads(first: bytes) -> str:
    """`Content.head` of a content that begins with `first`."""
    sizes = [size for size in HEAD_SIZES if size <= len(first)]
    return "".join(hashlib.sha256(first[:size]).hexdigest()[:HEAD_DIGITS] for size in sizes)


def begins_with(raw: IO[bytes], size: int, digest: str) -> bool:
    """Whether an open file begins with the content of that size and digest. Moves `raw`. Raises OSError.

    Of a plain file only the bytes of the fingerprint are read.
    """
    if is_packed(raw.read(4)):
        raw.seek(0)
        return chunks_begin_with(decompressed(HashedStream(raw, is_hashed=False)), size, digest)
    raw.seek(0)
    return _digest(*resume_point_bytes(raw, size)) == digest and raw.tell() == size


def chunks_begin_with(chunks: Iterator[bytes], size: int, digest: str) -> bool:
    """Whether what is unpacked begins with the content of that size and digest."""
    tracker = ContentTracker()
    try:
        for chunk in _up_to(chunks, size):
            tracker.add(chunk)
    except DamagedStream:
        return False
    return tracker.size == size and tracker.content().digest == digest


def _up_to(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:
            return


def _digest(first: bytes, last: bytes) -> str:
    return hashlib.sha256(first + last).hexdigest()
