"""The wire format: numbers, texts, nested messages, and what is damaged."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.text import protobuf_wire as wire


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def written(fields: list[tuple[int, int | bytes]]) -> bytes:
    return b"".join(
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    )


FIELDS = st.lists(st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary(max_size=300)))


@given(FIELDS)
def test_what_is_written_is_read(fields: list[tuple[int, int | bytes]]) -> None:
    assert list(wire.fields(written(fields))) == fields


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert all(number > 0 for number, _ in wire.fields(data))


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"\x12\x05abc", "cut"), (b"\x08", "cut"), (b"\x0b", "wire type 3"), (b"\x08" + b"\xff" * 11, "ten bytes")],
)
def test_damaged_messages_are_named(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(wire.fields(data))


def test_values_of_another_type_are_refused() -> None:
    for read, value in ((wire.as_double, 1), (wire.as_float, b"12"), (wire.signed, b"1"), (wire.as_text, 1)):
        with pytest.raises(ValueError, match="another type"):
            read(value)
