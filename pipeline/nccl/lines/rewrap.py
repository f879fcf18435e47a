"""Lines of the watchdog that a terminal has wrapped, put together again.

A line of a timeout has some 230 characters: a window of 80 columns leaves three pieces of it, one of 120 two. Windows
cut anywhere, and some leave out blanks at the end of a piece; what wraps at words drops the blank there and may indent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from sweepscope.pipeline.nccl.lines.watchdog import CAUGHT, matches

MOST_PIECES = 6
# Behind the name of its file, PyTorch tells a rank or group in brackets; warnings go on in words.
BEGINS = r"ProcessGroupNCCL[.](?:c|cp|cpp(?::[0-9]*\]?)?)?\s*(?:\[|$)|" + CAUGHT
"""What a line holds that may be the first piece of one; for polars, too."""
_BEGIN = re.compile(BEGINS)
_ANOTHER = re.compile(r"ProcessGroupNCCL\.|\[Rank \d+\] +" + CAUGHT)
_ENDS = ("milliseconds", "last completed")
"""What stands near the end of a line that is whole."""


def begin_here(text: pl.Series) -> pl.Series:
    """Which lines may be the first piece of one."""
    return text.str.contains(BEGINS) & ~text.str.contains("|".join(_ENDS))


def begins(text: str) -> bool:
    """Whether a line may be the first piece of one."""
    return _BEGIN.search(text) is not None and not any(word in text for word in _ENDS)


def whole(text: str, behind: Sequence[str]) -> str:
    """The line that begins with `text`, with as many of the lines behind it as make it tell most; `text` for none."""
    pieces = [text.rstrip("\r\n")]
    best, most = text, matches(text)
    for line in behind:
        if _ANOTHER.search(line):
            break
        pieces.append(line.rstrip("\r\n"))
        for joined in _joined(pieces):
            told = matches(joined)
            if told > most:
                best, most = joined, told
    return best


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    indent = min(len(piece) - len(piece.lstrip(" ")) for piece in pieces)
    pieces = [piece[indent:] for piece in pieces]
    width = max(map(len, pieces))
    yield "".join(pieces)
    yield "".join(piece.ljust(width) for piece in pieces)
    yield " ".join(piece.strip() for piece in pieces)
