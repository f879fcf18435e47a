"""Records in binary logs that programs append to: TFRecord files, and the log of LevelDB as W&B writes it.

A file that a process is writing, or was when it was killed, ends in the middle of a record: what is whole before it is
read. A record with a wrong checksum ends the reading, for nothing says where the next one begins.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import cache

_CHECKED_BYTES = 1 << 12
"""Payloads up to this size have their checksum compared: a scalar has some hundred bytes, an image a million, and in
Python each byte takes a tenth of a microsecond. The checksum of a length is always compared."""

# tensorflow/core/lib/io/record_writer.cc: uint64 length, masked crc32c of it, payload, masked crc32c of that.
_LENGTH = struct.Struct("<QI")
_MASK_DELTA = 0xA282EAD8

# leveldb/doc/log_format.md; wandb core/pkg/leveldb/record.go: crc32 (IEEE instead of leveldb's), uint16 length, type.
_CHUNK = struct.Struct("<IHB")
_BLOCK_BYTES = 32 * 1024
_WANDB_HEAD = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def tf_records(data: bytes) -> Iterator[bytes]:
    """Payloads of the whole records of a TFRecord file. Raises ValueError where it begins with none."""
    at = 0
    while at + _LENGTH.size <= len(data):
        size, checksum = _LENGTH.unpack_from(data, at)
        if _masked(data[at : at + 8]) != checksum:
            if at == 0:
                raise ValueError("no TFRecord file: the checksum of the first length is another")
            return
        begin = at + _LENGTH.size
        at = begin + size + 4
        if at > len(data):
            return
        payload = data[begin : begin + size]
        if size <= _CHECKED_BYTES and _masked(payload) != int.from_bytes(data[begin + size : at], "little"):
            return
        yield payload


def wandb_records(data: bytes) -> Iterator[bytes]:
    """Payloads of the whole records of a `.wandb` file, joined from their chunks.

    Raises ValueError for another file.
    """
    if not data.startswith(_WANDB_HEAD):
        raise ValueError("no file of W&B's: it has another head")
    at, is_open = len(_WANDB_HEAD), False
    parts: list[bytes] = []
    while at + _CHUNK.size <= len(data):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _CHUNK.size:  # the rest of a block that holds no further head is zeros
            at += left
            continue
        checksum, size, kind = _CHUNK.unpack_from(data, at)
        begin = at + _CHUNK.size
        at = begin + size
        is_whole = at <= len(data) and zlib.crc32(data[begin - 1 : at]) == checksum
        if not is_whole or kind not in (_FULL, _FIRST, _MIDDLE, _LAST):
            return
        if kind in (_FULL, _FIRST):
            parts, is_open = [], True
        if not is_open:
            return
        parts.append(data[begin:at])
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
            is_open = False


def _masked(data: bytes) -> int:
    """The masked crc32c of TFRecord (tensorflow/core/lib/hash/crc32c.h); that of these digits is 0xE3069283.

    >>> hex(_masked(b"123456789") - 0xA282EAD8 & 0xFFFFFFFF)
    '0x2507c60d'
    """
    crc = 0xFFFFFFFF
    table = _crc32c_table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


@cache
def _crc32c_table() -> tuple[int, ...]:
    """The remainders of all bytes by Castagnoli's polynomial, reflected (RFC 3720, B.4)."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)
