"""Lines of the watchdog that a terminal has wrapped, put together again.

A line of a timeout has some 230 characters: a window of 80 columns cuts it into three pieces, one of 120 into two.
Windows cut anywhere, and some drop blanks at the end of a piece; wrapping at words drops the blank and may indent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from sweepscope.pipeline.nccl.lines.watchdog import CAUGHT, matches

MOST_PIECES = 6
# PyTorch prints a rank or group in brackets after the name of its file; warnings continue with text.
BEGINS = r"ProcessGroupNCCL[.](?:c|cp|cpp(?::[0-9]*\]?)?)?\s*(?:\[|$)|" + CAUGHT
"""Matches lines that may be the first piece of a wrapped one; for polars, too."""
_BEGIN = re.compile(BEGINS)
_ANOTHER = re.compile(r"ProcessGroupNCCL\.|\[Rank \d+\] +" + CAUGHT)
_ENDS = ("milliseconds", "last completed")
"""Text near the end of a whole line."""


def begin_here(text: pl.Series) -> pl.Series:
    """A mask of the lines that may be the first piece of a wrapped one."""
    return text.str.contains(BEGINS) & ~text.str.contains("|".join(_ENDS))


def begins(text: str) -> bool:
    """Whether a line may be the first piece of a wrapped one."""
    return _BEGIN.search(text) is not None and not any(word in text for word in _ENDS)


def whole(text: str, following: Sequence[str]) -> str:
    """`text` joined with as many of the `following` lines as give most facts; `text` itself if none adds one."""
    pieces = [text.rstrip("\r\n")]
    best, most = text, matches(text)
    for line in following:
        if _ANOTHER.search(line):
            break
        pieces.append(line.rstrip("\r\n"))
        for joined in _joined(pieces):
            num_facts = matches(joined)
            if num_facts > most:
                best, most = joined, num_facts
    return best


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    indent = min(len(piece) - len(piece.lstrip(" ")) for piece in pieces)
    pieces = [piece[indent:] for piece in pieces]
    width = max(map(len, pieces))
    yield "".join(pieces)
    yield "".join(piece.ljust(width) for piece in pieces)
    yield " ".join(piece.strip() for piece in pieces)
