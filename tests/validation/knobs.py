"""What one setting is worth: runs of a table that differ in it alone, as measured and as estimated.

Layouts are ranked by what their settings are worth, so this says which setting an estimate gets wrong, and by how
much, where a rank correlation only says that something is. Accelerators that a setting takes are data-parallel
otherwise, and micro-batches follow so that the batch stays: `dp` and `grad_accum` are no settings of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from tests.validation.cells import NOISE

QUESTION = (
    *("model", "accelerator", "num_gpus", "gpus_per_node", "seq_len", "global_batch_tokens"),
    *("num_layers", "hidden_size", "num_heads", "framework"),
)
"""What competing layouts have in common."""
SETTINGS = (
    *("tp", "pp", "cp", "ep", "vpp", "micro_batch_size", "zero_stage_or_fsdp", "recompute", "precision"),
    *("sequence_parallel", "pipeline_schedule", "execution", "flash_attention"),
)
TRADED = "pp for tp"
"""As many replicas, of a wider tensor group with fewer stages: the one setting that moves two columns."""
_WORDS = ("none", "selective", "full", "bf16", "fp16", "fp8")


@dataclass(frozen=True)
class Pair:
    """Two runs that differ in `setting` alone: logarithms of what the larger value takes over the smaller one, and
    whether the runs have a pipeline that leaves the node."""

    setting: str
    measured: float
    estimated: float
    leaves_node: bool


def _order(value: str | None) -> tuple[float, str]:
    """Where a value stands among those of its setting: numbers by size, words by how much they do, then by letters."""
    text = value or ""
    try:
        return float(text), ""
    except ValueError:
        return float(_WORDS.index(text) if text in _WORDS else len(_WORDS)), text


def pairs(rows: pl.DataFrame) -> Iterator[Pair]:
    """Each run beside that with the next larger value of a setting and all else alike.

    `rows` have the columns of a table, as text, and `measured` and `estimated` in seconds. Repeats of a run enter by
    their geometric mean.
    """
    held = [name for name in (*QUESTION, *SETTINGS) if name in rows.columns]
    for setting in (*(name for name in SETTINGS if name in held), TRADED):
        moved = ("tp", "pp") if setting == TRADED else (setting,)
        if not set(moved) <= set(held):
            continue
        alike = [name for name in held if name not in moved] + ["dp"] * (setting == TRADED)
        of_run = [*alike, *moved]
        seconds = pl.col("measured", "estimated").log().mean()
        runs = rows.group_by(of_run, maintain_order=True).agg(seconds, pl.col("leaves_node").any())
        for _, group in runs.group_by(alike, maintain_order=True):
            found = group.select(moved[0], "measured", "estimated", "leaves_node").rows()
            for one, next_ in pairwise(sorted(found, key=lambda row: _order(row[0]))):
                yield Pair(setting, next_[1] - one[1], next_[2] - one[2], one[3] or next_[3])


def worth(rows: pl.DataFrame) -> pl.DataFrame:
    """Per setting: pairs, what its larger value adds to a step in the median, measured and estimated (percent), the
    median distance of the two, and the share of the pairs more than NOISE apart that are in the wrong order."""
    entries = []
    found = list(pairs(rows))
    for setting, leaves in dict.fromkeys((pair.setting, pair.leaves_node) for pair in found):
        of_setting = [pair for pair in found if (pair.setting, pair.leaves_node) == (setting, leaves)]
        measured, estimated = (
            np.array([getattr(pair, name) for pair in of_setting]) for name in ("measured", "estimated")
        )
        is_far = np.abs(measured) > np.log1p(NOISE)
        wrong = 100 * float(np.mean((measured * estimated <= 0)[is_far])) if is_far.any() else None
        adds = [100 * float(np.expm1(np.median(values))) for values in (measured, estimated)]
        apart = 100 * float(np.expm1(np.median(np.abs(measured - estimated))))
        entries.append(
            (setting, "over nodes" if leaves else "", len(of_setting), *adds, apart, int(is_far.sum()), wrong)
        )
    columns = ["setting", "pipeline", "pairs", "adds, measured %", "estimated %", "between the two, %"]
    return pl.DataFrame(entries, schema=[*columns, "pairs 10 % apart", "of these in the wrong order %"], orient="row")
