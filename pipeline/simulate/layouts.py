"""Random plausible layouts that a framework accepts for a model and a number of GPUs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from sweepscope.pipeline.simulate import physics
from sweepscope.pipeline.simulate.catalogue import Accelerator, ModelShape
from sweepscope.pipeline.simulate.truth import Layout

_HOPELESS = 1.5  # predicted memory over the device's; a layout above is drawn only where every other is above, too
_TRIES = 80


@dataclass(frozen=True)
class Cell:
    """Inputs to the choice of a layout. `gbs` in sequences."""

    model: ModelShape
    num_gpus: int
    seq_len: int
    gbs: int
    accelerator: Accelerator


def draw_layout(
    rng: random.Random, cell: Cell, *, zero_stages: tuple[int, ...], accepts: Callable[[Layout], bool]
) -> Layout | None:
    """A layout of the cell that `accepts` approves.

    The first within _HOPELESS times the memory, or else the one with least memory (it will run out); None when no
    proposal divides or is accepted.
    """
    leanest: tuple[float, Layout] | None = None
    for _ in range(_TRIES):
        layout = _propose(rng, cell, zero_stages)
        if layout is None or not accepts(layout):
            continue
        fill = physics.memory_bytes(cell.model, layout, cell.seq_len) / cell.accelerator.memory_bytes
        if fill < _HOPELESS:
            return layout
        if leanest is None or fill < leanest[0]:
            leanest = (fill, layout)
    return leanest[1] if leanest else None


def _propose(rng: random.Random, cell: Cell, zero_stages: tuple[int, ...]) -> Layout | None:
    """One draw of every degree; None where it does not divide KV heads, layers, GPUs, sequence or batch."""
    model = cell.model
    tp = rng.choices((1, 2, 4, 8, 16), (3, 4, 4, 5, 1))[0]
    pp = rng.choices((1, 2, 4, 8, 16), (5, 3, 3, 2, 1))[0]
    cp = rng.choices((1, 2, 4), (8, 2, 1))[0]
    if model.num_kv_heads % tp or model.ffn_hidden_size % tp or model.num_layers % pp or cell.num_gpus % (tp * pp * cp):
        return None
    dp = cell.num_gpus // (tp * pp * cp)
    mbs = rng.choices((1, 2, 4, 8), (4, 3, 2, 1))[0]
    gas, remainder = divmod(cell.gbs, dp * mbs)
    ep = rng.choice((1, 2, 4, 8)) if model.num_experts else 1
    if remainder or gas == 0 or dp % ep or cell.seq_len % (2 * cp):
        return None
    return Layout(
        dp=dp,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        gas=gas,
        mbs=mbs,
        zero_stage=rng.choice(zero_stages) if dp > 1 else 0,
        recompute=rng.choices(("none", "selective", "full"), (4, 2, 2))[0],
        sequence_parallel=tp > 1,
    )
