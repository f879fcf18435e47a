"""Members of tar and zip archives, within bounds that hold whatever an archive states of itself.

The format is known by its first bytes, whatever the name says. A plain tar is only leafed through, from header to
header. Of all others the members are written, one behind the other, to one file (`spool`), because a compressed stream
can be read from its begin only. A member that is named as weights or pictures and is large is passed over.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import posixpath
import tarfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, cast

from sweepscope.pipeline.io.file_names import printable
from sweepscope.pipeline.io.hidden_names import is_hidden
from sweepscope.pipeline.io.stream import DamagedStream, HashedStream, decompressed, is_packed
from sweepscope.schemas import limits

_PIECE_BYTES = 1 << 20
_XZ_MEMORY_BYTES = 256 << 20
"""Memory of a decoder of xz, whose dictionaries the stream itself asks for; `xz -9` needs 65 MiB."""
_BZIP2, _XZ, _ZIP = b"BZh", b"\xfd7zX", b"PK"
_END_OF_ZIP, _END_OF_ZIP_BYTES = b"PK\5\6", 22 + (64 << 10)
_EXTENDED_TIME = b"UT"
_MANY_FILES = 0xFFFF
"""Of a zip that states its number of files in the longer form only."""
_NAME_CHARS = 1_024
_BULK = (
    *(".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".distcp", ".gguf", ".onnx", ".npz", ".npy", ".h5", ".msgpack"),
    *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".mp4", ".webm", ".wav", ".flac", ".mp3", ".tiff", ".pdf"),
)
_BULK_BYTES = 1 << 20

Spool = Callable[[], AbstractContextManager[tuple[IO[bytes], int]]]
"""Opens the file to which members are written, and states how many bytes it may take."""


@dataclass(frozen=True)
class Member:
    """A file in an archive.

    Attributes:
        name: its path in the archive, as `file_names.printable` writes it.
        bytes: its size, unpacked.
        mtime: its modification time in seconds since 1970, which is never later than the archive's.
        offset: where its bytes begin in the file that has them; None where they are not kept.
    """

    name: str
    bytes: int
    mtime: float
    offset: int | None


@dataclass(frozen=True)
class Contents:
    """What an archive holds.

    Attributes:
        members: its files.
        notes: what of it is left out and why; without members, why it was not opened.
        data: the file that the offsets of members are in; None for an archive that was not opened.
        is_spooled: whether that file is another one than the archive.
    """

    members: tuple[Member, ...] = ()
    notes: tuple[str, ...] = ()
    data: str | None = None
    is_spooled: bool = False

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """Members by their name."""
        return {member.name: member for member in self.members}


class _Refused(Exception):
    """An archive, or the rest of it, is not read; the message says why."""


@dataclass(frozen=True)
class _Out:
    """The file to which members are written, and the bytes that it may take."""

    file: IO[bytes]
    most: int

    def take(self, pieces: Iterator[bytes]) -> None:
        """Append pieces. Raises _Refused where they are too many."""
        for piece in pieces:
            if self.file.tell() + len(piece) > self.most:
                raise _Refused(f"it unpacks to more than {self.most:,} bytes, all that there is room for")
            self.file.write(piece)


@dataclass
class _Members:
    """Members as they are found, and what is left out. `size` and `mtime` are those of the archive."""

    size: int
    mtime: float
    found: dict[str, Member] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    refusal: str = ""

    def name_of(self, stated: str) -> str | None:
        """The name to list a member under; None for one that is left out."""
        parts = [part for part in stated.split("/") if part not in ("", ".")]
        if not parts or ".." in parts or "\0" in stated or len(stated) > _NAME_CHARS:
            self.left_out["files whose name leads out of the archive or is none"] += 1
            return None
        if any(map(is_hidden, parts)):
            return None
        return printable("/".join(parts))

    def add(self, name: str, size: int, mtime: float, offset: int | None) -> None:
        """List a member; of two with the same name the later one counts, as when unpacking. Raises _Refused."""
        if len(self.found) >= limits.ARCHIVE_FILES:
            raise _Refused(f"it holds more than {limits.ARCHIVE_FILES:,} files")
        dated = min(mtime, self.mtime) if mtime > 0 else self.mtime
        self.found[name] = Member(name, size, dated, offset)

    def contents(self, data: str, *, is_spooled: bool) -> Contents:
        """All that was found."""
        notes = [f"{what} ({count:,})" for what, count in self.left_out.items()]
        left_out = [f"left out: {', '.join(notes)}"] if notes else []
        refused = []
        if self.refusal:
            read = f"; the {len(self.found):,} files before that are read" if self.found else ""
            refused = [f"{self.refusal}{read}. Unpack it beside the others to have all of its runs read."]
        return Contents(tuple(self.found.values()), (*refused, *left_out), data, is_spooled)


def read_archive(path: str, spool: Spool) -> Contents:
    """Members of an archive; of one that cannot be read whole, those before the fault.

    Args:
        path: as the operating system takes it.
        spool: opens the file that members of compressed archives are written to.
    """
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        members, magic = _Members(found.st_size, found.st_mtime), file.read(6)
        is_packed_tar = is_packed(magic) or magic.startswith((_BZIP2, _XZ))
        is_spooled, data = False, path
        file.seek(0)
        try:
            if is_packed_tar and found.st_size > limits.ARCHIVE_PACKED_BYTES:
                raise _Refused(f"it has more than {limits.ARCHIVE_PACKED_BYTES >> 30} GiB")
            if is_packed_tar or magic.startswith(_ZIP):
                with spool() as (spooled, most):
                    is_spooled, data, out = True, spooled.name, _Out(spooled, most)
                    if is_packed_tar:
                        _read_tar(_Forward(_unpacked(file, magic), found.st_size), members, out)
                    else:
                        _read_zip(file, members, out)
            else:
                _read_tar(file, members, None)
        except _Refused as error:
            members.refusal = str(error)
        except (DamagedStream, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
            members.refusal = f"it is damaged, or no archive ({error})"
        # Headers that contradict themselves make tarfile and zipfile raise any of the first three, methods of packing
        # that zipfile lacks the fourth, and files that are locked the last: the archive is refused, whatever it was.
        except (ValueError, OverflowError, RecursionError, NotImplementedError, RuntimeError) as error:
            members.refusal = f"it cannot be read ({error})"
    return members.contents(data, is_spooled=is_spooled)


def _read_tar(file: Any, members: _Members, out: _Out | None) -> None:
    """Members of a tar that is read from `file`; their bytes go to `out`, unless that is None."""
    headers = cast(IO[bytes], _Headers(file))
    archive: Any = tarfile.TarFile(fileobj=headers, encoding="utf-8", errors="surrogateescape")
    while info := archive.next():
        archive.members.clear()  # kept for looking them up, which nothing here does
        if info.isdir():
            continue
        if not info.isreg() or info.issparse() or info.size < 0:
            members.left_out["links, devices and files with holes"] += 1
            continue
        name = members.name_of(info.name)
        if name is None:
            continue
        if out is None:
            whole = min(info.size, max(0, members.size - info.offset_data))
            members.add(name, whole, info.mtime, info.offset_data)
            if whole < info.size:
                raise _Refused("it ends early")
        elif _is_bulk(name, info.size):
            members.add(name, info.size, info.mtime, None)
        else:
            offset, member = out.file.tell(), archive.extractfile(info)
            try:
                out.take(_chunks(member) if member else iter(()))
            finally:  # of a damaged archive the begin of the last member is there
                members.add(name, out.file.tell() - offset, info.mtime, offset)


def _is_bulk(name: str, size: int) -> bool:
    return size > _BULK_BYTES and posixpath.splitext(name.lower())[1] in _BULK


def _read_zip(file: IO[bytes], members: _Members, out: _Out) -> None:
    _check_number(file, members.size)
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if sum(info.file_size for info in infos if not _is_bulk(info.filename, info.file_size)) > _most(members.size):
            raise _Refused(_too_far(members.size))
        for info in infos:
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                members.left_out["files that are locked with a password"] += 1
                continue
            stated = info.filename if "/" in info.filename else info.filename.replace("\\", "/")
            name = members.name_of(stated)
            if name is None:
                continue
            if _is_bulk(name, info.file_size):
                members.add(name, info.file_size, _zip_time(info), None)
                continue
            offset = out.file.tell()
            with archive.open(info) as member:
                try:
                    out.take(_chunks(member))
                finally:
                    members.add(name, out.file.tell() - offset, _zip_time(info), offset)


def _chunks(member: IO[bytes]) -> Iterator[bytes]:
    while piece := member.read(_PIECE_BYTES):
        yield piece


def _check_number(file: IO[bytes], size: int) -> None:
    """Raise _Refused for a zip of more files than may be: zipfile makes objects of all of them at once."""
    file.seek(max(0, size - _END_OF_ZIP_BYTES))
    tail = file.read(_END_OF_ZIP_BYTES)
    file.seek(0)
    at = tail.rfind(_END_OF_ZIP)
    stated = int.from_bytes(tail[at + 10 : at + 12], "little") if at >= 0 else 0
    directory = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    if stated == _MANY_FILES or directory > limits.WHOLE_BYTES:
        raise _Refused(f"it holds more than {limits.ARCHIVE_FILES:,} files")


def _zip_time(info: zipfile.ZipInfo) -> float:
    """Modification time in seconds since 1970: of the extended stamp, which is UTC, else in this machine's zone."""
    extra = info.extra
    while len(extra) >= 4:
        length = int.from_bytes(extra[2:4], "little")
        if extra[:2] == _EXTENDED_TIME and length >= 5 and extra[4] & 1:
            return float(int.from_bytes(extra[5:9], "little", signed=True))
        extra = extra[4 + length :]
    try:
        return time.mktime((*info.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def _unpacked(file: IO[bytes], magic: bytes) -> Iterator[bytes]:
    """Pieces of a compressed stream, of bounded size however far it expands."""
    if magic.startswith(_BZIP2):
        return _pieces(file, bz2.BZ2Decompressor)
    if magic.startswith(_XZ):
        return _pieces(file, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES))
    return decompressed(HashedStream(file, is_hashed=False))


def _pieces(file: IO[bytes], make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> Iterator[bytes]:
    """Pieces of all streams of a file. Raises DamagedStream, OSError (bz2) or LZMAError where it is damaged."""
    unpack, waiting = make(), b""
    while True:
        if unpack.eof:
            waiting = unpack.unused_data.lstrip(b"\0") or file.read(_PIECE_BYTES)
            if not waiting:
                return
            unpack = make()
        elif unpack.needs_input and not waiting:
            waiting = file.read(_PIECE_BYTES)
            if not waiting:
                raise DamagedStream("the compressed file ends before its end-of-stream marker")
        try:
            piece = unpack.decompress(waiting, _PIECE_BYTES)
        except OSError as error:  # bz2, of damaged data
            raise DamagedStream(str(error)) from error
        waiting = b""
        if piece:
            yield piece


def _most(packed: int) -> int:
    return limits.UNPACKED_FREE_BYTES + limits.UNPACKED_RATIO * packed


def _too_far(packed: int) -> str:
    return f"it unpacks to more than {_most(packed):,} bytes, {limits.UNPACKED_RATIO} times its size"


class _Forward(io.RawIOBase):
    """Pieces of a stream as a file that is read forwards, and back within the last piece."""

    def __init__(self, pieces: Iterator[bytes], packed: int) -> None:
        self._pieces, self._packed = pieces, packed
        self._piece, self._begin, self._at = b"", 0, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Forwards, and by a byte back, which is how tarfile moves on to the next header."""
        return True

    def tell(self) -> int:
        """Bytes from the begin of the stream."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset from the begin of the stream. Raises DamagedStream for one too far back."""
        if whence != os.SEEK_SET or offset < self._begin:
            raise DamagedStream("a header leads backwards")
        self._at = offset
        while offset > self._begin + len(self._piece) and self._next():
            pass
        return offset

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, fewer only at the end of the stream."""
        parts: list[bytes] = []
        while size > 0:
            at = self._at - self._begin
            part = self._piece[at : at + size]
            if not part and not self._next():
                break
            parts.append(part)
            self._at += len(part)
            size -= len(part)
        return b"".join(parts)

    def _next(self) -> bool:
        """Whether there is a further piece. Raises _Refused where the stream unpacks too far."""
        piece = next(self._pieces, b"")
        if not piece:
            return False
        # One byte of the piece before stays.
        self._begin += max(0, len(self._piece) - 1)
        self._piece = self._piece[-1:] + piece
        if self._begin + len(self._piece) > _most(self._packed):
            raise _Refused(_too_far(self._packed))
        return True


class _Headers:
    """A file from which tarfile takes no header that would not fit into memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        """As any file. Raises DamagedStream for more than a piece, as a hostile header asks for."""
        if not 0 <= size <= _PIECE_BYTES:
            raise DamagedStream(f"a header of {size:,} bytes")
        return self._file.read(size)
