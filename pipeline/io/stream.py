"""Reading forward through one file: counted, hashed, decompressed, with marks by which a place is known again."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

import pyarrow as pa

CHUNK_BYTES = 12 << 20
MARK_BYTES = 64 << 10
_PIECE_BYTES = 1 << 20  # a decompressed piece is still in the processor's cache when it is put into its chunk
_PROBE_BYTES = 64 << 10  # a line that ends a chunk is looked for so far back
_REMEMBERED_BYTES = 8 << 20  # how far back a mark can lie: an unfinished line is rarely as long
_CUT = "Truncated compressed stream"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class DamagedStream(Exception):
    """A compressed stream that is cut, or is none."""


def is_packed(head: bytes) -> bool:
    """Whether bytes begin a stream that we decompress."""
    return head.startswith((_GZIP, _ZSTD))


@dataclass(frozen=True)
class Mark:
    """A place in a file, known again by the bytes before it.

    `digest` is the SHA-256 of the first MARK_BYTES of the file and of the last MARK_BYTES before `offset`. A file that
    was cut, rotated or written anew no longer has the mark. A change in between that leaves both alone goes unnoticed.
    """

    offset: int
    digest: str


def bytes_of_mark(raw: IO[bytes], offset: int) -> tuple[bytes, bytes]:
    """The first MARK_BYTES of a file and the last ones before `offset`, where `raw` then stands. Raises OSError."""
    head = raw.read(min(MARK_BYTES, offset))
    raw.seek(max(0, offset - MARK_BYTES))
    return head, raw.read(min(MARK_BYTES, offset))


class Tape(io.RawIOBase):
    """Passes reads through, counts and hashes them, and remembers the first and the last bytes."""

    def __init__(
        self,
        raw: IO[bytes],
        *,
        size: int | None = None,
        head: bytes = b"",
        recent: bytes = b"",
        start: int = 0,
        is_hashed: bool = True,
    ) -> None:
        self.raw, self._size, self._is_hashed = raw, size, is_hashed
        self.start = self.position = start
        self.head = head
        self._recent, self._held = deque([recent]), len(recent)
        self._digest = hashlib.sha256()
        self._peeked: bytes | memoryview = b""

    @property
    def magic(self) -> bytes:
        """The next four bytes, which stay to be read."""
        self._peeked = self._peeked or self._take(CHUNK_BYTES)
        return bytes(self._peeked[:4])

    @property
    def is_compressed(self) -> bool:
        """Whether a stream that we decompress begins here. Its size is no limit then: half a stream is damaged."""
        found = is_packed(self.magic)
        self._size = None if found else self._size
        return found

    @property
    def sha256(self) -> str:
        """Hash of what was read."""
        return self._digest.hexdigest()

    def mark(self, offset: int) -> Mark | None:
        begin, held_from = max(0, offset - MARK_BYTES), self.position - self._held
        if not held_from <= begin <= offset <= self.position:
            return None
        before = b"".join(self._recent)[begin - held_from : offset - held_from]
        return Mark(offset, hashlib.sha256(self.head[:offset] + before).hexdigest())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # RawIOBase asks for any writable buffer
        peeked = memoryview(self._peeked or self._take(len(buffer)))
        data, self._peeked = peeked[: len(buffer)], peeked[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def chunk(self) -> bytes:
        """The next bytes, as many as one call to the system gives, up to the end of a line if one is near; none at the
        end."""
        data, self._peeked = self._peeked, b""
        return bytes(data) if data else self._take(self._to_line_end(CHUNK_BYTES))  # bytes are not copied

    def _to_line_end(self, count: int) -> int:
        """How many of the next `count` bytes end with a line: cutting them off later would copy them all."""
        if not isinstance(self.raw, io.FileIO):
            return count
        width = min(_PROBE_BYTES, count)
        probe = os.pread(self.raw.fileno(), width, self.position + count - width)
        end = probe.rfind(b"\n") + 1
        return count - width + end if end and len(probe) == width else count

    def drain(self) -> None:
        """Read what the decompressor left unread (bytes behind the end of its stream)."""
        while self._take(CHUNK_BYTES):
            pass

    def _take(self, count: int) -> bytes:
        count = count if self._size is None else min(count, self._size - self.position)
        data = self.raw.read(count) if count else b""
        if self._is_hashed:
            self._digest.update(data)
        if self.position < MARK_BYTES:
            self.head += data[: MARK_BYTES - self.position]
        self.position += len(data)
        self._recent.append(data)
        self._held += len(data)
        while self._held - len(self._recent[0]) >= _REMEMBERED_BYTES:
            self._held -= len(self._recent.popleft())
        return data


def decompressed(tape: Tape) -> Iterator[bytes]:
    """Chunks of the gzip or zstd stream on a tape. Raises DamagedStream, or what the decompressor of gzip does."""
    if tape.magic[:2] == _GZIP:
        return _chunks(_read_on(cast(IO[bytes], gzip.GzipFile(fileobj=io.BufferedReader(tape)))))
    return _chunks(_zstd(io.BufferedReader(tape, CHUNK_BYTES)))


def _chunks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces put together, to chunks that end with a line where they can."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES:
            end = piece.rfind(b"\n") + 1 or len(piece)
            yield b"".join([*held[:-1], memoryview(piece)[:end]])
            held, size = [piece[end:]], len(piece) - end
    if size:
        yield b"".join(held)


def _read_on(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _zstd(raw: io.BufferedReader) -> Iterator[bytes]:
    """Frames one after the other, as Arrow reads them: whole pieces at once, and never more, however far a hostile file
    expands. zstandard's own stream reader takes a cut frame for the end of the file.

    Raises DamagedStream for a damaged or cut frame.
    """
    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    try:
        while piece := stream.read(_PIECE_BYTES):
            yield piece
    except OSError as error:
        if error.errno is None:  # Arrow's own; what the system says of the file has a number
            what = str(error) if _CUT not in str(error) else "the compressed file ends before its end-of-stream marker"
            raise DamagedStream(what) from error
        raise
