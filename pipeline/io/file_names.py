"""File names as text that can be stored and printed: a byte that is not UTF-8 is written as `\\xff`."""

from __future__ import annotations

import os
import re

_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_UNDECODED = re.compile("[\udc80-\udcff]")  # os.fsdecode has these for bytes that are not UTF-8


def printable(path: str) -> str:
    r"""`path` as text, from which `on_disk` gives the path back.

    >>> printable(os.fsdecode(b"/logs/t\xe4st.log"))
    '/logs/t\\xe4st.log'
    """
    escaped = _ESCAPED.sub(r"\\x5cx\1", path) if "\\x" in path else path  # a name may have such text itself
    return _UNDECODED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", escaped)


def on_disk(path: str) -> str:
    r"""The path that `printable` has written, as functions of the operating system take it.

    >>> os.fsencode(on_disk(r"/logs/t\xe4st.log"))
    b'/logs/t\xe4st.log'
    """
    if "\\x" not in path:
        return path
    as_bytes = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), os.fsencode(path))
    return os.fsdecode(as_bytes)
