"""The landing zone: list files and read them in chunks, from local disk or any fsspec URL. Interprets nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from stat import S_ISDIR, S_ISREG
from typing import IO, Any, cast

import fsspec
import zstandard

from pipeline.errors import InputError, UnreadableError, UsageError

CHUNK_BYTES = 12 << 20
MARK_BYTES = 64 << 10
_REMEMBERED_BYTES = 8 << 20  # how far back a mark can lie: an unfinished line is rarely as long
_ZSTD_PIECE_BYTES = 8 << 10
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Entry:
    """One file: absolute path or URL, size in bytes, modification time in seconds since 1970.

    Or a directory that may not be looked into: it stands for the files that we cannot see.
    """

    path: str
    bytes: int
    mtime: float
    is_file: bool = True


def is_url(path: str) -> bool:
    """Whether fsspec rather than the local file system is meant."""
    return "://" in path


def canonical(path: str) -> str:
    """The one name by which a path is known, however it was spelled: absolute, `..` and links resolved; a URL as it is.

    Two names would make two runs of one log, and a repeat that never ran.

    >>> canonical("file:///proc/../proc/version"), canonical("s3://bucket/runs")
    ('/proc/version', 's3://bucket/runs')
    """
    local = path.removeprefix("file://")
    return local if is_url(local) else os.path.realpath(local)


def list_files(root: str) -> Iterator[Entry]:
    """Every regular file at or below `root`; hidden files and directories are left out.

    A `root` that is a link is listed under the name of what it leads to. Links below are followed where they lead out
    of `root`, each directory once; what lies below `root` is listed under its own name only. A file that vanishes
    while the listing runs is left out; a directory that cannot be listed is an entry itself.

    Raises:
        UsageError: `root` is empty or does not exist.
        InputError: it exists and cannot be listed.
    """
    if not root:
        raise UsageError("A path is empty: is a variable unset? Give a run directory, a sweep directory or a log file.")
    path = canonical(root)
    if is_url(path):
        yield from _list_url(path)
        return
    try:
        stat = os.stat(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"No such file or directory: {root}. Give a run directory, a sweep directory or a log file."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {root}: {error.strerror}. Make it readable, or run as its owner.") from error
    if S_ISDIR(stat.st_mode):
        yield from _list_directory(path)
    elif S_ISREG(stat.st_mode):
        yield Entry(_storable(path), stat.st_size, stat.st_mtime)
    else:
        raise UsageError(f"{root} is neither a file nor a directory. Save what comes out of it, and give that file.")


def _list_directory(root: str) -> Iterator[Entry]:
    roots = {os.path.realpath(root)}  # real directories whose contents are listed anyway
    todo = [root]
    while todo:
        directory = todo.pop()
        try:
            children = _children(directory)
        except OSError as error:
            if directory == root:
                raise InputError(
                    f"Cannot list {root}: {error.strerror}. Make it readable, or run as its owner."
                ) from error
            yield _closed(directory)
            continue
        for child in children:
            try:
                if child.is_symlink() and _is_listed(os.path.realpath(child.path), roots):
                    continue
                if child.is_dir():
                    if child.is_symlink():
                        roots.add(os.path.realpath(child.path))
                    todo.append(child.path)
                elif child.is_file():
                    stat = child.stat()
                    yield Entry(_storable(child.path), stat.st_size, stat.st_mtime)
            except FileNotFoundError:
                continue
            except OSError:
                yield _closed(child.path)


def _closed(path: str) -> Entry:
    """What stands for a place that we may not look into; reading it fails, and the ledger keeps that failure."""
    return Entry(_storable(path), 0, 0.0, is_file=False)


def _children(directory: str) -> list[os.DirEntry[str]]:
    """What is in a directory apart from hidden names, by name; nothing if it has just vanished. Raises OSError."""
    try:
        with os.scandir(directory) as found:
            return sorted((child for child in found if not child.name.startswith(".")), key=lambda child: child.name)
    except FileNotFoundError:
        return []


def _is_listed(real: str, roots: set[str]) -> bool:
    """Whether the place that a link leads to is met without it, or holds a root and so would be a loop."""
    for root in roots:
        if real == root or root.startswith(real + os.sep):
            return True
        if real.startswith(root + os.sep):
            return not any(part.startswith(".") for part in real.removeprefix(root).split(os.sep))
    return False


def _storable(path: str) -> str:
    """`path`, if it can be stored as text. Raises InputError for a name that is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", errors="replace")
        raise InputError(f"Cannot keep the name {shown}: it is not UTF-8. Rename the file.") from error
    return path


def _list_url(root: str) -> Iterator[Entry]:
    try:
        filesystem, inner = fsspec.core.url_to_fs(root)
        listed = filesystem.find(inner, detail=True)
    except ValueError as error:
        raise UsageError(f"Cannot read {root}: {error}. Check the URL.") from error
    except ImportError as error:
        raise InputError(f"Cannot list {root}: {error}. Install what it names beside sweepscope.") from error
    except OSError as error:
        raise InputError(f"Cannot list {root}: {error}. Check the URL and the credentials.") from error
    if not listed:
        raise UsageError(f"Nothing found at {root}. Check the URL.")
    for name, info in sorted(listed.items()):
        if not any(part.startswith(".") for part in name.removeprefix(inner).split("/")):
            yield Entry(filesystem.unstrip_protocol(name), int(info.get("size") or 0), _modified(info))


def _modified(info: Mapping[str, Any]) -> float:
    """Modification time in seconds since 1970, by whatever name and type the store has for it; 0 where it has none."""
    names = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
    stamp = next((info[name] for name in names if info.get(name)), 0)
    if isinstance(stamp, str):
        stamp = datetime.fromisoformat(stamp)
    if isinstance(stamp, datetime):
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    return float(stamp)


def marker_above(marker: str) -> Callable[[str], bool]:
    """Tells of a directory whether it or one above it holds a file of that name (local paths only).

    What is above is looked at once, however many directories are asked about.
    """

    @cache
    def is_marked(directory: str) -> bool:
        parent = os.path.dirname(directory)
        return os.path.exists(os.path.join(directory, marker)) or (parent != directory and is_marked(parent))

    return lambda directory: not is_url(directory) and is_marked(directory)


@dataclass(frozen=True)
class Mark:
    """A place in a file, known again by the bytes before it.

    `digest` is the SHA-256 of the first MARK_BYTES of the file and of the last MARK_BYTES before `offset`. A file that
    was cut, rotated or written anew no longer has the mark. A change in between that leaves both alone goes unnoticed.
    """

    offset: int
    digest: str


@dataclass
class Reader:
    """Chunks of one file, decompressed.

    Attributes:
        path: local path or URL.
        size: a plain file is read up to here: what is appended meanwhile belongs to the next ingest.
        is_hashed: whether `sha256` is wanted; a ledger does, a look at a file does not.
        sha256: hash of the bytes on disk, once they have been read from the first to the last.
        is_compressed: known once reading has begun.
    """

    path: str
    size: int | None = None
    is_hashed: bool = True
    sha256: str | None = field(default=None, init=False)
    is_compressed: bool = field(default=False, init=False)
    _checked_bytes: int = field(default=0, init=False)
    _tape: _Tape | None = field(default=None, init=False)

    @property
    def position(self) -> int:
        """Bytes of the file that lie behind us."""
        return self._tape.position if self._tape else 0

    @property
    def bytes_read(self) -> int:
        """Bytes read from the disk, those included by which a mark was recognised."""
        return self._checked_bytes + (self._tape.position - self._tape.start if self._tape else 0)

    @property
    def head(self) -> bytes:
        """The first MARK_BYTES of the file as it is on disk, as far as they have been read."""
        return self._tape.head if self._tape else b""

    def mark(self, offset: int) -> Mark | None:
        """The mark of a place behind us; None when it lies further back than what is remembered."""
        return self._tape.mark(offset) if self._tape else None

    def resume(self, mark: Mark) -> bool:
        """Whether the file still has the mark; then `chunks` yields what stands behind it, just as it is on disk.

        False also where one cannot begin in the middle, as with a web server that serves no ranges.
        """
        try:
            raw = _open(self.path)
        except OSError:
            return False  # reading says why
        try:
            head = raw.read(min(MARK_BYTES, mark.offset))
            raw.seek(max(0, mark.offset - MARK_BYTES))
            recent = raw.read(min(MARK_BYTES, mark.offset))
        except (OSError, ValueError, NotImplementedError):  # the three ways in which fsspec files refuse to seek
            head = recent = b""
        self._checked_bytes += len(head) + len(recent)
        tape = _Tape(raw, size=self.size, head=head, recent=recent, start=mark.offset)
        if tape.mark(mark.offset) != mark:
            raw.close()
            return False
        self._tape = tape
        return True

    def chunks(self) -> Iterator[bytes]:
        """Decompressed chunks of about CHUNK_BYTES.

        Raises:
            UnreadableError: the system does not let us read it.
            InputError: its compressed stream is damaged.
        """
        is_resumed = self._tape is not None
        try:
            tape = self._tape = self._tape or _Tape(_open(self.path), size=self.size, is_hashed=self.is_hashed)
            with tape.raw:
                self.is_compressed = not is_resumed and tape.is_compressed
                if self.is_compressed:
                    yield from _decompressed(tape)
                    tape.drain()
                else:
                    yield from iter(tape.chunk, b"")
        except (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise InputError(f"Cannot read {self.path}: {error}") from error
        except PermissionError as error:
            raise UnreadableError(
                f"Cannot read {self.path}: permission denied. Make it readable, or run as its owner."
            ) from error
        except OSError as error:
            raise UnreadableError(f"Cannot read {self.path}: {error.strerror or error}. Ingest again later.") from error
        self.sha256 = None if is_resumed or not self.is_hashed else tape.sha256


def _open(path: str) -> IO[bytes]:
    if is_url(path):
        return cast(IO[bytes], fsspec.open(path, "rb").open())
    return cast(IO[bytes], open(path, "rb", buffering=0))  # chunks are larger than any buffer


class _Tape(io.RawIOBase):
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
        self._peeked = memoryview(b"")

    @property
    def magic(self) -> bytes:
        """The next four bytes, which stay to be read."""
        self._peeked = self._peeked or memoryview(self._take(CHUNK_BYTES))
        return bytes(self._peeked[:4])

    @property
    def is_compressed(self) -> bool:
        """Whether a stream that we decompress begins here. Its size is no limit then: half a stream is damaged."""
        magic = self.magic
        found = magic[:2] == _GZIP or magic == _ZSTD
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
        if not self._peeked:
            self._peeked = memoryview(self._take(len(buffer)))
        data, self._peeked = self._peeked[: len(buffer)], self._peeked[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def chunk(self) -> bytes:
        """The next bytes, as many as one call to the system gives; none at the end."""
        data, self._peeked = self._peeked, memoryview(b"")
        return bytes(data) if data else self._take(CHUNK_BYTES)

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


def _decompressed(tape: _Tape) -> Iterator[bytes]:
    if tape.magic[:2] == _GZIP:
        return _read_on(cast(IO[bytes], gzip.GzipFile(fileobj=io.BufferedReader(tape))))
    return _zstd(_buffered(tape))


def _buffered(tape: _Tape) -> io.BufferedReader:
    return io.BufferedReader(tape, CHUNK_BYTES)


def _read_on(stream: IO[bytes] | io.BufferedReader) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _zstd(raw: io.BufferedReader) -> Iterator[bytes]:
    """Frames one after the other. zstandard's own stream reader takes a cut frame for the end of the file.

    Raises EOFError for a cut frame.
    """
    frame, pending, size = None, [], 0
    # Small pieces: a hostile one expands by up to four orders of magnitude.
    while piece := raw.read(_ZSTD_PIECE_BYTES):
        while piece:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            data = frame.decompress(piece)
            pending.append(data)
            size += len(data)
            piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        if size >= CHUNK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if frame:
        raise EOFError("the compressed file ends before its end-of-stream marker")
    if size:
        yield b"".join(pending)
