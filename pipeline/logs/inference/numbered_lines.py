"""Lines that begin with a number and a colon, which may be the rank that `srun --label` puts there, or that of a step.

Ranks are few, and each prints again and again; steps rise, and few lines are printed of each.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.engine.cleaning import NUMBER, with_numbers

_LEAST = 20
"""Such lines from which on their order tells something."""
_RISING = 0.9
"""Of the changes from line to line."""
_MOST_OF_ONE = 4
"""Lines of a step, on average: its training and evaluations, or a training that begins again."""


def numbered_lines(sample: pl.DataFrame) -> pl.DataFrame | None:
    """The lines with the numbers in front of them, where these may be those of steps; else None.

    Args:
        sample: `text`, `rank`, `prefix`, `block` of cleaned lines, in order.
    """
    own = sample.filter(pl.col("prefix").str.contains(NUMBER))
    if own.height < _LEAST or _MOST_OF_ONE * own["rank"].n_unique() < own.height:
        return None
    change = pl.col("rank").diff().over("block")
    up, down = own.select(up=(change > 0).sum(), down=(change < 0).sum()).row(0)
    return with_numbers(sample) if up >= _RISING * (up + down) else None
