"""Release of freed memory that the C library keeps: a tenth of the process after blocks of many megabytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Return it to the system: pays between stages, not between blocks, since the pages are faulted in again.

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
