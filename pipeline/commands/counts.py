"""Counts as arguments: whole numbers with suffixes, read in one place for every command."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal

_COUNT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?(?:[eE]\+?\d{1,2})?)\s?(?P<suffix>[kKmMbBgGtT]?)(?P<binary>i?)")
_POWERS = {"": 0, "k": 1, "m": 2, "b": 3, "g": 3, "t": 4}
_LARGEST = 2**63 - 1
"""Of a BIGINT."""

FORMS = "2048, 1_048_576, 4k, 2M or 2Mi"


def read_count(text: str, *, is_binary: bool = False) -> int:
    """The whole number of a text. Raises ValueError for another text, a fraction, and what no BIGINT holds.

    k, M, B (or G) and T are powers of 1,000; with an i behind them, and where `is_binary`, of 1,024.

    >>> read_count("1_048_576"), read_count("2M"), read_count("2Mi"), read_count("4k", is_binary=True)
    (1048576, 2000000, 2097152, 4096)
    >>> read_count("1.5e12"), read_count("0.5Mi")
    (1500000000000, 524288)
    """
    found = _COUNT.fullmatch(text.strip())
    if found is None or (found["binary"] and not found["suffix"]):
        raise ValueError(f"not a count: {text!r}; write it as {FORMS}")
    base = 1024 if is_binary or found["binary"] else 1000
    number = Decimal(re.sub("[_,]", "", found["number"])) * base ** _POWERS[found["suffix"].lower()]
    if number != number.to_integral_value():
        raise ValueError(f"not a whole number: {text!r} is {number.normalize():f}")
    if number > _LARGEST:
        raise ValueError(f"too large: {text!r}")
    return int(number)


def count(text: str) -> int:
    """The type of an argument that is a count of anything."""
    return _argument(text, is_binary=False)


def tokens_of_a_batch(text: str) -> int:
    """The type of an argument that is the length of a sequence or a batch in tokens.

    Practitioners name these by powers of two, as the dashboard does: 4k are 4,096 and 2M are 2,097,152 tokens.
    """
    return _argument(text, is_binary=True)


def _argument(text: str, *, is_binary: bool) -> int:
    """`read_count`, or that of a negative one, so that commands say what is too small. Raises ArgumentTypeError."""
    bare = text.strip()
    try:
        return (
            -read_count(bare[1:], is_binary=is_binary)
            if bare.startswith("-")
            else read_count(bare, is_binary=is_binary)
        )
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
