"""Sentences on the difference of two logs."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import count, number

TITLE = "Lines that only one of the logs has"
HINT = "numbers, hashes and addresses aside"
NO_LOG = "Only runs whose logs lie on this machine can be compared so."


def found(letter: str, forms: int, lines: int) -> str:
    """How many kinds of lines a log has for itself, of how many lines."""
    if not forms:
        return f"**{letter}** has no line that the other has not, in {count(lines, 'line')}."
    return f"**{letter}** has {count(forms, 'kind')} of lines for itself, in {count(lines, 'line')}."


def cut(letters: Sequence[str], most: int) -> str:
    """That longer logs are read in part; "" where none is."""
    return f"Of {' and '.join(letters)} the first {number(most)} lines were read." if letters else ""


def alike(lines: int) -> str:
    """How many lines are alike, after the first of them."""
    return "" if lines == 1 else f"{number(lines)} lines alike"
