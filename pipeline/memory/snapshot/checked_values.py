"""Checks of single values of a snapshot, which may come from a hostile file."""

from __future__ import annotations

from typing import Final

from sweepscope.pipeline.io.safe_pickle import PickleRefusedError

RefusedError = PickleRefusedError
TEXT_LIMIT: Final = 1_000


def integer_of(value: object, what: str, *, bits: int = 64) -> int:
    """`value`, if it is an integer in [0, 2**bits) and no bool. Raises RefusedError."""
    if type(value) is not int:
        raise RefusedError(f"{what} is {type(value).__name__}, not an integer")
    if not 0 <= value < 1 << bits:
        raise RefusedError(f"{what} is {value if -(10**20) < value < 10**20 else 'huge'}, outside 0 to 2**{bits}")
    return value


def count_of(value: object, what: str) -> int:
    """`value`, if it is a number of bytes that fits into a column. Raises RefusedError."""
    return integer_of(value, what, bits=63)


def text_of(value: object) -> str:
    """`value` as text that can be stored and shown: no NUL, no lone surrogate, bounded; '' for other values.

    >>> text_of("a\\x00b\\ud800"), text_of(7)
    ('a b\\ufffd', '')
    """
    if type(value) is not str:
        return ""
    cut = value[:TEXT_LIMIT]
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else "\ufffd" if "\ud800" <= c <= "\udfff" else " " for c in cut)
