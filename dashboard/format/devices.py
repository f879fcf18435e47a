"""What a run's `num_gpus` counts: accelerators, or ranks where it ran on a CPU."""

from __future__ import annotations

import polars as pl

from sweepscope.dashboard.format.numbers import count

CPU = "CPU"
"""The accelerator of runs without one."""


def noun(accelerator: str | None) -> str:
    """Of one."""
    return "CPU rank" if accelerator == CPU else "GPU"


def devices(number: int, accelerator: str | None) -> str:
    """The number with its noun.

    >>> devices(16, "H100-SXM-80GB"), devices(1, None), devices(4, CPU)
    ('16 GPUs', '1 GPU', '4 CPU ranks')
    """
    return count(number, noun(accelerator))


def are_ranks(rows: pl.DataFrame) -> bool:
    """Whether all rows with an accelerator ran on a CPU, and some did."""
    if "accelerator" not in rows.columns:
        return False
    known = rows["accelerator"].drop_nulls()
    return known.len() > 0 and bool((known == CPU).all())
