"""Reader of one file, local or behind a URL: decompressed chunks, their hash, and points to resume from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, cast

from sweepscope.pipeline.errors import InputError, LimitError, UnreadableError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.archives import open_member
from sweepscope.pipeline.io.bounded import bounded
from sweepscope.pipeline.io.content import Content, ContentTracker, begins_with, chunks_begin_with, heads
from sweepscope.pipeline.io.file_names import on_disk
from sweepscope.pipeline.io.number_tables import is_number_table, lines_of_table
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.io.stream import DamagedStream, HashedStream, ResumePoint, decompressed, resume_point_bytes
from sweepscope.schemas import limits


@dataclass
class Reader:
    """Chunks of one file, decompressed.

    Attributes:
        path: local path as `file_names.printable` writes it, or URL.
        size: a plain file is read up to here: what is appended meanwhile belongs to the next ingest.
        is_hashed: whether `sha256` is computed; the ledger needs it, an inspection does not.
        is_lenient: a compressed stream ends where it is damaged, or unpacks beyond its limit: `cut` says which of both,
            and `damage` describes it.
        is_verbatim: a binary table is given as it is, not as lines.
        sha256: hash of the bytes on disk, once they have been read from the first to the last.
        is_compressed: known once reading has begun.
    """

    path: str
    size: int | None = None
    is_hashed: bool = True
    is_lenient: bool = False
    is_verbatim: bool = False
    damage: str | None = field(default=None, init=False)
    cut: str = field(default="", init=False)
    sha256: str | None = field(default=None, init=False)
    is_compressed: bool = field(default=False, init=False)
    _checked_bytes: int = field(default=0, init=False)
    _stream: HashedStream | None = field(default=None, init=False)
    _is_read: bool = field(default=False, init=False)
    _unpacked: ContentTracker = field(default_factory=ContentTracker, init=False)

    @property
    def position(self) -> int:
        """Offset in the file, in bytes, up to which it was read."""
        return self._stream.position if self._stream else 0

    @property
    def bytes_read(self) -> int:
        """Bytes read from the disk, including those that a resume point was compared with."""
        return self._checked_bytes + (self._stream.position - self._stream.start if self._stream else 0)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that have been read, as many as they are unpacked."""
        return self._unpacked.size if self.is_compressed else self.position

    @property
    def head(self) -> bytes:
        """The first FINGERPRINT_BYTES of the file as it is on disk, as far as they have been read."""
        return self._stream.head if self._stream else b""

    @property
    def content(self) -> Content | None:
        """What the file holds; None unless it was read to its end."""
        if not self._is_read:
            return None
        if self.is_compressed:
            return self._unpacked.content()
        end = self.resume_point(self.position)
        return Content(end.offset, end.digest, heads(self.head)) if end else None

    def begins_with(self, size: int, digest: str) -> bool:
        """Whether the file begins with the content of that size and digest; False where it cannot be read."""
        try:
            with _open(self.path) as raw:
                is_table = is_number_table(raw.read(4), self.path)
                raw.seek(0)
                is_same = begins_with(raw, size, digest)
                if is_same or not is_table:
                    return is_same
                raw.seek(0)
                return chunks_begin_with(lines_of_table(raw.read(limits.WHOLE_BYTES), self.path), size, digest)
        except (OSError, ValueError, NotImplementedError):  # fsspec files refuse to seek with any of the three
            return False

    def resume_point(self, offset: int) -> ResumePoint | None:
        """The resume point at an offset that was read; None when it lies further back than the stream remembers."""
        return self._stream.resume_point(offset) if self._stream else None

    def resume(self, point: ResumePoint) -> bool:
        """Whether the file still matches a resume point; `chunks` then yields the bytes behind it, as on disk.

        False also where reading cannot begin in the middle, as with a web server without range requests.
        """
        try:
            raw = _open(self.path)
        except OSError:
            return False  # `chunks` raises the reason
        try:
            head, recent = resume_point_bytes(raw, point.offset)
        except (OSError, ValueError, NotImplementedError):  # the three ways in which fsspec files refuse to seek
            head = recent = b""
        self._checked_bytes += len(head) + len(recent)
        stream = HashedStream(raw, size=self.size, head=head, recent=recent, start=point.offset)
        if stream.resume_point(point.offset) != point:
            raw.close()
            return False
        self._stream = stream
        return True

    def chunks(self) -> Iterator[bytes]:
        """Decompressed chunks of about `stream.CHUNK_BYTES`.

        Raises:
            UnreadableError: the operating system denies reading it.
            LimitError: its compressed stream unpacks too far.
            InputError: it is damaged.
        """
        is_resumed = self._stream is not None
        try:
            stream = self._stream = self._stream or HashedStream(
                _open(self.path), size=self.size, is_hashed=self.is_hashed
            )
            with stream.raw:
                self.is_compressed = not is_resumed and stream.is_compressed
                if self.is_compressed:
                    yield from self._decompressed(stream)
                    stream.drain()
                elif not (is_resumed or self.is_verbatim) and is_number_table(stream.magic, self.path):
                    self.is_compressed = True
                    yield from self._rows(stream)
                else:
                    yield from iter(stream.chunk, b"")
        except PermissionError as error:
            raise UnreadableError(
                f"Cannot read {self.path}: permission denied. Make it readable, or run as its owner."
            ) from error
        except OSError as error:
            raise UnreadableError(f"Cannot read {self.path}: {error.strerror or error}. Ingest again later.") from error
        self._is_read = True
        self.sha256 = None if is_resumed or not self.is_hashed else stream.sha256

    def _decompressed(self, stream: HashedStream) -> Iterator[bytes]:
        try:
            for chunk in decompressed(stream):
                most = limits.UNPACKED_FREE_BYTES + limits.UNPACKED_RATIO * stream.position
                if self._unpacked.size + len(chunk) > most:
                    self._stop_unpacking(most)
                    return
                self._unpacked.add(chunk)
                yield chunk
        except DamagedStream as error:
            if not (self.is_lenient and self._unpacked.size):
                raise InputError(
                    f"Cannot read {self.path}: {error}. Copy it again, or unpack what is left of it and give that."
                ) from error
            self.cut = "the compressed file is damaged here"
            self.damage = f"{error}, near byte {stream.position:,} of the compressed file"

    def _rows(self, stream: HashedStream) -> Iterator[bytes]:
        """Rows of a binary table, as lines. Raises LimitError and InputError."""
        data = b"".join(bounded(iter(stream.chunk, b"")))
        try:
            for chunk in lines_of_table(data, self.path):
                self._unpacked.add(chunk)
                yield chunk
        except ValueError as error:
            raise InputError(f"Cannot read {self.path}: {error}. Leave it out, or export it as CSV.") from error

    def _stop_unpacking(self, most: int) -> None:
        """Read no more of a lenient reader's file. Raises LimitError of another."""
        why = f"it unpacks to more than {most:,} bytes, {limits.UNPACKED_RATIO} times its size"
        if not self.is_lenient:
            raise LimitError(f"{why}. Unpack it and give that file.", self.path)
        self.cut, self.damage = "the rest is not read: unpack the file and give that", why


def _open(path: str) -> IO[bytes]:
    if is_url(path):
        return remote.opened(path)
    try:
        return cast(IO[bytes], open(on_disk(path), "rb", buffering=0))  # chunks are larger than any buffer
    except NotADirectoryError:
        return open_member(path)
