"""How a layout is placed on the nodes, and its ZeRO stage: implementations' costs differ by these.

The same labels as in the view `estimator_residuals`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.schedule import ZB_H1, ZB_V, is_dual, is_v_shaped

PLACEMENTS: Final = ("PP over nodes", "TP over nodes", "PP in a node", "TP in a node", "DP only")
STAGES: Final = 4
PATTERNS: Final = tuple(f"{placement} · ZeRO-{stage}" for placement in PLACEMENTS for stage in range(STAGES))


def pattern_codes(at: Layouts, gpus_per_domain: int) -> NDArray[np.int64]:
    """Index into PATTERNS of each layout, in the shape of `at`; a node is what links join (a rack of NVL72)."""
    over = at.num_gpus > gpus_per_domain
    placement = np.select([(at.pp > 1) & over, at.tp > gpus_per_domain, at.pp > 1, at.tp > 1], [0, 1, 2, 3], 4)
    codes: NDArray[np.int64] = np.broadcast_to(placement * STAGES + at.zero_stage, at.shape).astype(np.int64)
    return codes


CHOICES: Final = (
    *(f"ZeRO-{stage}" for stage in range(STAGES)),
    *("CP", "EP", "interleaving", "selective recomputation"),
    *("full recomputation", "HSDP", "zero bubble", "DualPipe"),
)
"""Choices that runs of a framework may or may not have made."""


def has_choice(at: Layouts, choice: str) -> NDArray[np.bool_]:
    """Whether each layout makes a choice of CHOICES; broadcasts like `at`."""
    made: dict[str, NDArray[np.bool_]] = {
        **{f"ZeRO-{stage}": at.zero_stage == stage for stage in range(STAGES)},
        "CP": at.cp > 1,
        "EP": at.ep > 1,
        "interleaving": (at.vpp > 1) & ~is_v_shaped(at),
        "selective recomputation": at.recompute == 1,
        "full recomputation": at.recompute >= 2,
        "HSDP": (at.dp_replicate > 1) & (at.zero_stage > 0),
        "zero bubble": ((at.schedule == ZB_H1) | (at.schedule == ZB_V)) & (at.pp > 1),
        "DualPipe": is_dual(at) & (at.pp > 1),
    }
    return made[choice]


def has_unseen(at: Layouts, seen: frozenset[str]) -> NDArray[np.bool_]:
    """Whether each layout makes a choice that is not among `seen`: nothing measured is comparable to it."""
    unseen = np.zeros(at.shape, np.bool_)
    for choice in CHOICES:
        if choice not in seen:
            unseen |= has_choice(at, choice)
    return unseen


def placement_of(pattern: str) -> str:
    """A pattern without its ZeRO stage.

    >>> placement_of("PP over nodes · ZeRO-1")
    'PP over nodes'
    """
    return pattern.partition(" · ")[0]
