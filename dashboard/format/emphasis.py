"""Emphasis in the product's sentences: `**fact**` is bold. Quoted lines of logs stand in the same sentences."""

from __future__ import annotations

import re
from typing import Final

BOLD: Final = re.compile(r"(?<!\*)\*\*(?![\s*])(.+?)(?<![\s*])\*\*(?!\*)")
"""A fact between its marks, which touch it and stand alone: `*** STEP 5.0 CANCELLED ***` and `a ** b` have none."""


def without_marks(text: str) -> str:
    """A sentence without its marks of emphasis.

    >>> without_marks("**TP=2** wins: *** STEP 5.0 CANCELLED ***")
    'TP=2 wins: *** STEP 5.0 CANCELLED ***'
    """
    return BOLD.sub(r"\1", text)
