"""Forward reading of one file: counted, hashed, decompressed, with fingerprints of the positions to resume from."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

CHUNK_BYTES = 6 << 20
FINGERPRINT_BYTES = 64 << 10
_PIECE_BYTES = 1 << 20  # a decompressed piece is still in the processor's cache when it is put into its chunk
_PROBE_BYTES = 64 << 10  # a line end is searched for this far back from the end of a chunk
_REMEMBERED_BYTES = 8 << 20  # how far back a resume point can lie: unfinished lines are rarely longer
_PACKED_BYTES = 128 << 10
_ZSTD_PIECE_BYTES = 64 << 10
_GZIP_BITS = 31  # zlib's word for a gzip header and trailer
_ENDS_EARLY = "the compressed file ends before its end-of-stream marker"
_CUT = "Truncated compressed stream"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class DamagedStream(Exception):
    """A compressed stream that is truncated or malformed."""


def is_packed(head: bytes) -> bool:
    """Whether bytes begin a gzip or zstd stream."""
    return head.startswith((_GZIP, _ZSTD))


@dataclass(frozen=True)
class ResumePoint:
    """An offset in a file, with a fingerprint of the bytes before it.

    `digest` is the SHA-256 of the first FINGERPRINT_BYTES of the file and of the last FINGERPRINT_BYTES before
    `offset`. A file that was truncated, rotated or rewritten has another digest. A change between the two ranges goes
    unnoticed.
    """

    offset: int
    digest: str


def resume_point_bytes(raw: IO[bytes], offset: int) -> tuple[bytes, bytes]:
    """The first FINGERPRINT_BYTES of a file and the last ones before `offset`. Leaves `raw` at `offset`.

    Raises OSError.
    """
    head = raw.read(min(FINGERPRINT_BYTES, offset))
    raw.seek(max(0, offset - FINGERPRINT_BYTES))
    return head, raw.read(min(FINGERPRINT_BYTES, offset))


class HashedStream(io.RawIOBase):
    """A raw stream that counts and hashes what is read from it, and remembers the first and the most recent bytes."""

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
        self._recent, self._recent_bytes = deque([recent]), len(recent)
        self._digest = hashlib.sha256()
        self._peeked: bytes | memoryview = b""

    @property
    def magic(self) -> bytes:
        """The next four bytes, without consuming them."""
        self._peeked = self._peeked or self._take(CHUNK_BYTES)
        return bytes(self._peeked[:4])

    @property
    def is_compressed(self) -> bool:
        """Whether a gzip or zstd stream begins here. `size` no longer limits it then: half a stream is damaged."""
        found = is_packed(self.magic)
        self._size = None if found else self._size
        return found

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far."""
        return self._digest.hexdigest()

    def resume_point(self, offset: int) -> ResumePoint | None:
        """The resume point at `offset`; None where its bytes are no longer remembered."""
        begin, recent_start = max(0, offset - FINGERPRINT_BYTES), self.position - self._recent_bytes
        if not recent_start <= begin <= offset <= self.position:
            return None
        before = b"".join(self._recent)[begin - recent_start : offset - recent_start]
        return ResumePoint(offset, hashlib.sha256(self.head[:offset] + before).hexdigest())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # RawIOBase asks for any writable buffer
        peeked = memoryview(self._peeked or self._take(len(buffer)))
        data, self._peeked = peeked[: len(buffer)], peeked[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def chunk(self) -> bytes:
        """The bytes of one system call, up to a line end if one is near; b"" at the end of the file."""
        data, self._peeked = self._peeked, b""
        return bytes(data) if data else self._take(self._to_line_end(CHUNK_BYTES))  # bytes are not copied

    def _to_line_end(self, count: int) -> int:
        """How many of the next `count` bytes to read so that they end with a line: truncating later would copy them."""
        if not isinstance(self.raw, io.FileIO):
            return count
        width = min(_PROBE_BYTES, count)
        probe = os.pread(self.raw.fileno(), width, self.position + count - width)
        end = probe.rfind(b"\n") + 1
        return count - width + end if end and len(probe) == width else count

    def drain(self) -> None:
        """Read the bytes behind the end of the compressed stream, for the hash."""
        while self._take(CHUNK_BYTES):
            pass

    def _take(self, count: int) -> bytes:
        count = count if self._size is None else min(count, self._size - self.position)
        data = self.raw.read(count) if count else b""
        if self._is_hashed:
            self._digest.update(data)
        if self.position < FINGERPRINT_BYTES:
            self.head += data[: FINGERPRINT_BYTES - self.position]
        self.position += len(data)
        self._recent.append(data)
        self._recent_bytes += len(data)
        while self._recent_bytes - len(self._recent[0]) >= _REMEMBERED_BYTES:
            self._recent_bytes -= len(self._recent.popleft())
        return data


def decompressed(stream: HashedStream) -> Iterator[bytes]:
    """Decompressed chunks of a gzip or zstd stream, as far as it is whole. Raises DamagedStream behind them."""
    if stream.magic[:2] == _GZIP:
        return _chunks(_gzip(stream))
    return _chunks(_zstd(io.BufferedReader(stream, CHUNK_BYTES)))


def _chunks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces joined to chunks that end with a line where possible."""
    parts: list[bytes] = []
    size = 0
    damage = None
    try:
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size >= CHUNK_BYTES:
                end = piece.rfind(b"\n") + 1 or len(piece)
                yield b"".join([*parts[:-1], memoryview(piece)[:end]])
                parts, size = [piece[end:]], len(piece) - end
    except DamagedStream as error:
        damage = error
    if size:
        yield b"".join(parts)
    if damage:
        raise damage


def _gzip(stream: HashedStream) -> Iterator[bytes]:
    """Pieces of all members of a gzip stream, up to the byte where it is damaged; zeros behind it are padding."""
    unpack, waiting = zlib.decompressobj(_GZIP_BITS), b""
    while waiting or (waiting := stream.read(_PACKED_BYTES) or b""):
        if unpack.eof:
            waiting = waiting.lstrip(b"\0")
            if waiting and not _GZIP.startswith(waiting[:2]):
                raise DamagedStream("other bytes follow the compressed stream")
            if waiting:
                unpack = zlib.decompressobj(_GZIP_BITS)
            continue
        before = unpack.copy()
        try:
            piece = unpack.decompress(waiting, _PIECE_BYTES)
        except zlib.error as error:
            yield from _before_damage(before, waiting)
            raise DamagedStream(str(error)) from error
        waiting = unpack.unconsumed_tail or unpack.unused_data
        if piece:
            yield piece
    while not unpack.eof and (piece := unpack.decompress(b"", _PIECE_BYTES)):
        yield piece
    if not unpack.eof:
        raise DamagedStream(_ENDS_EARLY)


def _before_damage(unpack: Any, data: bytes) -> Iterator[bytes]:
    """What can be unpacked of `data` before the byte at which zlib refuses."""
    pieces = []
    with suppress(zlib.error):
        for start in range(len(data)):
            pieces.append(unpack.decompress(data[start : start + 1]))  # noqa: PERF401 - keeps those before the error
    yield b"".join(pieces)


def _zstd(raw: io.BufferedReader) -> Iterator[bytes]:
    """Concatenated frames, decompressed by Arrow in pieces of bounded size however far a hostile file expands.

    zstandard's stream reader would take a truncated frame for the end of the file.

    Raises DamagedStream for a damaged or truncated frame; up to _ZSTD_PIECE_BYTES before the damage are lost.
    """
    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    try:
        while piece := stream.read(_ZSTD_PIECE_BYTES):
            yield piece
    except OSError as error:
        if error.errno is None:  # raised by Arrow; errors of the operating system have a number
            raise DamagedStream(_ENDS_EARLY if _CUT in str(error) else str(error)) from error
        raise
