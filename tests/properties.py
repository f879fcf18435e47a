"""Laws whose every example takes seconds: the suite tries the stated ones, and a longer search is a variable away.

`SWEEPSCOPE_THOROUGH=1 make test` draws random examples as well, and takes all pairs and files instead of chosen ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import cycle, product
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings

A = TypeVar("A")
B = TypeVar("B")

THOROUGH = bool(os.environ.get("SWEEPSCOPE_THOROUGH"))


def draws(thorough: int) -> int:
    """How many random examples a law is tried with: a fifth of those of a thorough search."""
    return thorough if THOROUGH else max(thorough // 5, 5)


def stated_examples(*, more: int = 50) -> settings:
    """Settings for a test with `@example`s: only those, or `more` random ones too if asked for."""
    return settings(
        max_examples=more,
        phases=tuple(Phase) if THOROUGH else (Phase.explicit,),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )


def pairs(first: Sequence[A], second: Sequence[B]) -> list[tuple[A, B]]:
    """Pairs in which every value of both occurs; all pairs if the search is to be thorough."""
    if THOROUGH:
        return list(product(first, second))
    if len(first) < len(second):
        return list(zip(cycle(first), second, strict=False))
    return list(zip(first, cycle(second), strict=False))
