"""A planned run as its launch files need it: layout, batch, model and machine, all of them known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import shape_of

CPU = "CPU"
"""The accelerator of trials: a word of `runs.accelerator` without a peak rate."""


@dataclass(frozen=True)
class Planned:
    """A row of `planned_runs`. Degrees, `mbs`, `gas` and `gbs` as in the store; `walltime_s` is the time limit,
    `precision` that of matrix products; NULL in plans of before it was kept, which are in 16 bit."""

    name: str
    model: str
    shape: ModelShape
    accelerator: str
    num_nodes: int
    gpus_per_node: int
    seq_len: int
    dp: int
    tp: int
    pp: int
    cp: int
    ep: int
    vpp: int
    zero_stage: int
    dp_replicate: int
    mbs: int
    gas: int
    recompute: str
    sequence_parallel: bool
    pipeline_schedule: str
    steps: int
    walltime_s: int
    precision: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Planned:
        """The planned run of a row of `planned_runs`."""
        same = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        return cls(**same, name=row["planned_run_id"], shape=shape_of(dict(row)), steps=row["steps_planned"])

    @property
    def is_trial(self) -> bool:
        """Whether it is started on a CPU, where nothing is planned."""
        return self.accelerator == CPU

    @property
    def num_gpus(self) -> int:
        """Ranks of the job."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def gbs(self) -> int:
        """Global batch in sequences."""
        return self.dp * self.mbs * self.gas

    @property
    def is_sharded(self) -> bool:
        """Whether ZeRO shards anything over the data-parallel ranks."""
        return self.zero_stage > 0 and self.dp * self.cp > 1
