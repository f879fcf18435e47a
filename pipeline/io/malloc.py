"""What the C library keeps of memory that was freed: behind blocks of many megabytes, a tenth of the process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Hand it to the system: worth it between stages, not between blocks, for the pages are fetched anew.

    malloc_trim is glibc's (malloc/malloc.c); other C libraries keep less and have none.
    """
    _trim()(0)


@cache
def _trim() -> Callable[[int], int]:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return lambda _pad: 0
    return trim
