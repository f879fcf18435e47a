"""The columns of a layout as arrays, one entry per layout. Everything else of a question is a scalar.

Degrees are those of the product N = dp x tp x cp x pp; expert parallelism lives inside dp x cp (x tp), as in Megatron.
`batch_shards` = dp x cp holds the same dense parameters; ZeRO shards them over all of it, or over `zero_shards` of it
with `dp_replicate` copies of the sharded states (HSDP in PyTorch, 2304.11277 section 3.2.2; MiCS, 2205.00119).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""One float64 per layout: counts are exact in it up to 2**53, and mixed arithmetic needs no casts."""


def sum_parts(parts: Iterable[Array]) -> Array:
    """Their sum, entry by entry. Small arrays first: those that broadcast are added up before they are spread out."""
    first, *others = sorted(parts, key=np.size)
    for part in others:
        first = first + part
    return first


RECOMPUTE_MODES = ("none", "selective", "full")
SCHEDULES = ("afab", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "dualpipe-v")
"""Pipeline schedules by their codes; `schedule` has their papers."""


@dataclass(frozen=True)
class Layouts:
    """Layouts of one model on one cluster. `recompute` and `schedule` index RECOMPUTE_MODES and SCHEDULES.

    Columns broadcast against one another: a list of layouts is columns of one length; a grid has one axis per choice,
    so that what depends on few choices is computed for those alone.
    """

    dp: Array
    tp: Array
    pp: Array
    cp: Array
    ep: Array
    etp: Array
    vpp: Array
    zero_stage: Array
    mbs: Array
    gas: Array
    recompute: Array
    sequence_parallel: Array
    schedule: Array
    dp_replicate: Array

    @classmethod
    def of(cls, **columns: float | Array) -> Layouts:
        """Layouts from scalars and arrays; a degree left out is 1, and there is no recomputation, no ZeRO, 1F1B."""
        default = {"zero_stage": 0.0, "recompute": 0.0, "sequence_parallel": 0.0, "schedule": 1.0}
        return cls(
            **{
                field.name: np.atleast_1d(np.asarray(columns.get(field.name, default.get(field.name, 1.0)), np.float64))
                for field in fields(cls)
            }
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid, or the length of the list."""
        return np.broadcast_shapes(*(getattr(self, field.name).shape for field in fields(self)))

    def __getitem__(self, index: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Layouts:
        """The layouts of a mask or index over the whole grid, as a list."""
        shape = self.shape
        return Layouts(
            **{
                field.name: np.atleast_1d(np.broadcast_to(getattr(self, field.name), shape)[index])
                for field in fields(self)
            }
        )

    @property
    def num_gpus(self) -> Array:
        """dp x tp x cp x pp."""
        return self.dp * self.tp * self.cp * self.pp

    @property
    def batch_shards(self) -> Array:
        """dp x cp: ranks that hold the same dense parameters."""
        return self.dp * self.cp

    @property
    def zero_shards(self) -> Array:
        """Ranks over which ZeRO spreads the dense states: all of `batch_shards`, or a group with replicas beside it."""
        return self.batch_shards / self.dp_replicate

    @property
    def expert_zero_shards(self) -> Array:
        """Ranks over which ZeRO spreads the routed experts' states."""
        return np.maximum(self.expert_shards / self.dp_replicate, 1.0)

    @property
    def expert_shards(self) -> Array:
        """Ranks that hold the same experts (expert data parallelism): dp x cp x tp / (ep x etp)."""
        return np.maximum(self.dp * self.cp * self.tp / (self.ep * self.etp), 1.0)

    @property
    def sigma(self) -> Array:
        """Degree by which sequence parallelism splits what tensor parallelism would replicate."""
        return np.where(self.sequence_parallel > 0, self.tp, 1.0)

    def global_batch_tokens(self, seq_len: int) -> Array:
        """Tokens per step: dp x gas x mbs x s. Context parallelism splits sequences, it adds none."""
        return self.dp * self.gas * self.mbs * seq_len
