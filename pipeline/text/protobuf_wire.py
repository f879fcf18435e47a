"""Fields of protocol buffer messages, read by the wire format alone: for files whose schema is known, without its code.

Format: protobuf.dev/programming-guides/encoding. A field is a tag (number and wire type) and a value: a varint, four or
eight bytes, or bytes with their length. Groups, which nothing writes any more, are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | bytes
"""A varint as an unsigned number; all others as the bytes that they are."""

_MOST_VARINT_BYTES = 10


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field, in the order of the message. Raises ValueError where it is damaged.

    >>> list(fields(bytes([8, 150, 1, 18, 2, 104, 105])))
    [(1, 150), (2, b'hi')]
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("not a protocol buffer message: a field with the number 0")
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"not a protocol buffer message: wire type {kind}")
        if at + size > end:
            raise ValueError("a protocol buffer message that was cut")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of 64 bits, and the position behind it."""
    value = 0
    for index in range(_MOST_VARINT_BYTES):
        if at + index >= len(message):
            raise ValueError("a protocol buffer message that was cut")
        byte = message[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & (2**64 - 1), at + index + 1
    raise ValueError("not a protocol buffer message: a number of more than ten bytes")


def signed(value: Value) -> int:
    """An int32 or int64, which is written as its two's complement. Raises ValueError for bytes.

    >>> signed(2**64 - 1), signed(7)
    (-1, 7)
    """
    number = as_number(value)
    return number - 2**64 if number >= 2**63 else number


def as_number(value: Value) -> int:
    """A varint. Raises ValueError for a field of another type."""
    if isinstance(value, bytes):
        raise ValueError("a field of a protocol buffer message has another type")
    return value


def as_bytes(value: Value) -> bytes:
    """Bytes, a text or a message. Raises ValueError for a number."""
    if not isinstance(value, bytes):
        raise ValueError("a field of a protocol buffer message has another type")
    return value


def as_text(value: Value) -> str:
    """A text; what is no UTF-8 in it is replaced. Raises ValueError for a number."""
    return as_bytes(value).decode("utf-8", "replace")


def as_double(value: Value) -> float:
    """A double. Raises ValueError for another type."""
    return _unpacked("<d", value)


def as_float(value: Value) -> float:
    """A float. Raises ValueError for another type."""
    return _unpacked("<f", value)


def _unpacked(form: str, value: Value) -> float:
    try:
        return float(struct.unpack(form, as_bytes(value))[0])
    except struct.error as error:
        raise ValueError("a field of a protocol buffer message has another type") from error
