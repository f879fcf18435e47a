"""Lines that a terminal has broken at its width, as they stay in what was copied from its window.

`tmux capture-pane`, a saved scrollback and a pasted window have a line feed where the window ended. A broken line is
joined again, and an empty line put in the place of each of its other parts, so that those behind keep their numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

_NARROWEST, _WIDEST = 60, 400
"""Columns of a window; a shorter line is broken by whatever prints it."""
_LEAST = 5
_LEAST_SHARE = 0.15
"""So many lines fill the window, and this share of all."""
_LEAST_CUT = 0.3
"""Of the lines that fill it: so many are broken where no line ends, within a word or in front of a sign."""
_GOES_ON = " |,;:)]}=/>%"
"""Signs with which a line goes on rather than begins."""
_START = 8
"""Characters by which a line's begin is known."""
_MOST_PARTS = 64
_FRAME = ("|", "+")
"""With which each row of a box that a program draws begins and ends: it is whole, however many fill the window."""


def window_width(head: bytes) -> int | None:
    """Columns of the window that has broken the lines of a text; None where none has.

    No line is longer, many fill it and begin alike, and what follows these goes on within a word or with a sign; nor
    does it begin as they do, which lines of one length that were never broken would.

    >>> window_width(b"".join(b"step %02d loss 2.%02d " % (n, n) + b"x" * 42 + b"\\n" + b"yz\\n" for n in range(9)))
    60
    >>> window_width(b"".join(b"step %02d loss 2.%02d " % (n, n) + b"x" * 42 + b"\\n" for n in range(18)))
    """
    lines = [line.rstrip("\r") for line in head.decode("utf-8", errors="replace").split("\n")[:-1]]
    width = max(map(len, lines), default=0)
    if not _NARROWEST <= width <= _WIDEST or any("\r" in line for line in lines):
        return None  # a window shows no redraws
    full = [(line, after) for line, after in pairwise(lines) if len(line) == width and not _is_framed(line)]
    if len(full) < max(_LEAST, _LEAST_SHARE * len(lines)):
        return None
    before = ["", *lines]
    first = [
        (line, after)
        for last, (line, after) in zip(before, pairwise(lines), strict=False)
        if len(line) == width > len(last) and not _is_framed(line)
    ]
    begins = Counter(_begin(line) for line, _ in first)
    is_continued = all(_begin(after) not in begins for _, after in first)
    cut = sum(_is_within_word(line[-1], after[:1]) or after[:1] in _GOES_ON for line, after in full)
    is_broken = is_continued and cut >= _LEAST_CUT * len(full) and max(begins.values(), default=0) >= _LEAST
    return width if is_broken else None


def _is_within_word(last: str, first: str) -> bool:
    """Whether a word or a number goes on: a number in front of a capital letter ends a line of its own.

    >>> _is_within_word("2", "5"), _is_within_word("o", "s"), _is_within_word("5", "V")
    (True, True, False)
    """
    return (last.isdigit() and first.isdigit()) or (last.isalpha() and first.isalpha() and first.islower())


def unbroken(chunks: Iterable[bytes], width: int) -> Iterator[bytes]:
    """The chunks of a text with its lines whole.

    >>> b"".join(unbroken([b"abcdefgh\\nij\\nkl\\n"], 8))
    b'abcdefghij\\n\\nkl\\n'
    """
    partial, parts = b"", 0
    held = b""
    for chunk in chunks:
        *whole, partial = (partial + chunk).split(b"\n")
        out = []
        for line in whole:
            text = line.rstrip(b"\r").decode("utf-8", errors="replace")
            is_full = len(text) == width and parts < _MOST_PARTS and (parts > 0 or not _is_framed(text))
            held += line.rstrip(b"\r") if is_full else line
            if is_full:
                parts += 1
                continue
            out.append(held + b"\n" * (parts + 1))
            held, parts = b"", 0
        yield b"".join(out)
    if held or partial:
        yield held + partial + b"\n" * parts


def _is_framed(line: str) -> bool:
    """Whether a line is a row or a rule of a box, as nvidia-smi draws it.

    >>> _is_framed("|   0  NVIDIA L40S     On  |"), _is_framed("+------+------+"), _is_framed("| step 7 |  loss")
    (True, True, False)
    """
    return line.startswith(_FRAME) and line.endswith(_FRAME)


def _begin(line: str) -> str:
    return re.sub(r"\d", "0", line[:_START])
