"""Whether an expression can tell one digit from another."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from itertools import pairwise

_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL)
_ESCAPES = frozenset("dDwWsSbBntrfvA")
_SET_SIGNS = ("[", "&&", "--", "~~", "||")


@lru_cache(maxsize=1_024)
def is_blind(pattern: str) -> bool:
    r"""Whether a pattern matches at the same positions whatever the digits are, in Python and in Rust.

    It must name no digit outside of `0-9`. False when in doubt.

    >>> [is_blind(pattern) for pattern in (r"step (\d{1,3})", r"(-?[0-9.]+)%", r"rank 0: (\S+)", r"([1-9]\d*)")]
    [True, True, False, False]
    """
    parts = _PART.findall(pattern)
    if not all(_is_blind(part) for part in parts) or any(_is_possessive(*two) for two in pairwise(parts)):
        return False
    try:
        with warnings.catch_warnings(action="error"):
            re.compile(pattern)
    except (re.error, Warning):
        return False
    return True


def _is_blind(part: str) -> bool:
    """Whether an escape, a set, a quantifier or a character names no digit and means the same in both."""
    if len(part) == 1:
        return not part.isdigit()
    if part[0] == "\\":
        return part[1] in _ESCAPES or not part[1].isalnum()
    if part[0] == "[":
        # Another range holds all ten digits or none, unless it begins or ends with one.
        inner = part[1:-1].replace("0-9", "")
        return not any(character.isdigit() for character in inner) and not any(sign in inner for sign in _SET_SIGNS)
    return True


def _is_possessive(part: str, following: str) -> bool:
    """`a++` is greedy in Rust."""
    return following == "+" and (part in {"*", "+", "?"} or (part[0] == "{" and len(part) > 1))
