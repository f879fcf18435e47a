r"""Where words begin and end in expressions of polars, whose `\b` knows the letters of all scripts.

With such a boundary its engine (Rust's regex, "Unicode word boundaries" in its documentation) leaves its fast automaton
at the first byte that is not ASCII, such as a block of a progress bar, and searches some twenty times slower. The
boundary `(?-u:\b)` looks at ASCII letters alone: one is between a Chinese character and a Latin letter, too, where a
reader sees it.
"""

from __future__ import annotations

import re
from functools import lru_cache

BOUNDARY = r"(?-u:\b)"
_UNICODE = re.compile(r"(?<!-u:)(?<!\\)((?:\\\\)*)\\b")


@lru_cache(maxsize=1_024)
def ascii_bounded(pattern: str) -> str:
    r"""A pattern for polars, its boundaries of words those of ASCII letters.

    >>> ascii_bounded(r"\bgas\b|(?-u:\b)tp|\\b")
    '(?-u:\\b)gas(?-u:\\b)|(?-u:\\b)tp|\\\\b'
    """
    return _UNICODE.sub(rf"\1{BOUNDARY}".replace(r"\b", r"\\b"), pattern)


def in_python(pattern: str) -> str:
    r"""The same pattern for Python, which has no other way to write `(?-u:\b)` than `\b`."""
    return pattern.replace(BOUNDARY, r"\b")
