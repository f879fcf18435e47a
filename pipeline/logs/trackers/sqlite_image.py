"""A SQLite database in memory, made of the bytes of its file and of its write-ahead log: no file of anybody is opened.

Formats: sqlite.org/fileformat2.html (1.3 the header of the file, 4 the write-ahead log). A database that a program is
writing just now may have been copied between two of its writes: that shows when its pages are checked.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager

HEAD = b"SQLite format 3\0"
_JOURNAL_BYTES = slice(18, 20)  # how it is written and read: 1 for rollback journals, 2 for a write-ahead log
_WAL_HEAD, _FRAME_HEAD = struct.Struct(">8I"), struct.Struct(">6I")
_WAL_MAGIC = 0x377F0682
"""Its last bit says whether the words of checksums are big-endian."""


@contextmanager
def opened(data: bytes, wal: bytes = b"") -> Iterator[sqlite3.Connection]:
    """A connection to the database with what its write-ahead log has committed.

    Raises ValueError for an empty, cut or damaged file, and for one that is no database of SQLite. Errors of SQLite
    within the block are raised as ValueError, too.
    """
    if not data:
        raise ValueError("it is empty")
    if not data.startswith(HEAD):
        raise ValueError("it is no database of SQLite")
    image = _with_log(bytearray(data), wal)
    image[_JOURNAL_BYTES] = b"\x01\x01"  # an image in memory has no log beside it
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.deserialize(bytes(image))
            del image
            for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
                connection.execute(f"PRAGMA {pragma}")
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise ValueError(_damaged(verdict))
            yield connection
        except (sqlite3.Error, OverflowError) as error:
            raise ValueError(_damaged(str(error))) from error


def columns_of(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Names of the columns of each table; of none that is virtual or a view, which may compute for ever."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
    ).fetchall()
    names = "SELECT name FROM pragma_table_info(?)"
    return {table: {name for (name,) in connection.execute(names, [table])} for (table,) in tables}


def missing(tables: dict[str, set[str]], wanted: Mapping[str, Collection[str]]) -> list[str]:
    """`table.column` of what a database lacks of the wanted columns."""
    return [
        f"{table}.{name}" for table, names in wanted.items() for name in sorted({*names} - tables.get(table, set()))
    ]


def _damaged(why: str) -> str:
    return f"it is cut, damaged or was being written ({why}): ingest again when nothing writes it"


def _with_log(image: bytearray, wal: bytes) -> bytearray:
    """The image with the pages of all transactions that the log has committed."""
    if len(wal) < _WAL_HEAD.size:
        return image
    magic, _, page_bytes, _, *salts, first, second = _WAL_HEAD.unpack_from(wal)
    if magic | 1 != _WAL_MAGIC | 1 or page_bytes < 512:
        return image
    order = ">" if magic & 1 else "<"
    sums = _checksum(wal[:24], order, (0, 0))
    if sums != (first, second):
        return image
    pending: dict[int, bytes] = {}
    for at in range(_WAL_HEAD.size, len(wal) - _FRAME_HEAD.size - page_bytes + 1, _FRAME_HEAD.size + page_bytes):
        page, pages, *own_salts, first, second = _FRAME_HEAD.unpack_from(wal, at)
        content = wal[at + _FRAME_HEAD.size : at + _FRAME_HEAD.size + page_bytes]
        sums = _checksum(content, order, _checksum(wal[at : at + 8], order, sums))
        if own_salts != salts or sums != (first, second) or page == 0:
            break
        pending[page] = content
        if pages:
            _apply(image, pending, pages * page_bytes, page_bytes)
            pending = {}
    return image


def _apply(image: bytearray, pages: dict[int, bytes], size: int, page_bytes: int) -> None:
    for page, content in pages.items():
        start = (page - 1) * page_bytes
        if start > len(image) + len(pages) * page_bytes:  # no log leaves a hole that large
            return
        if start > len(image):
            image.extend(bytes(start - len(image)))
        image[start : start + page_bytes] = content
    del image[size:]


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}2I", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
