"""Ground truth of a simulated run: the values in its files, before anything is printed.

Step values are rounded as the dialect prints them, and None where it prints nothing, so that parsing the rendered text
must return exactly these. Names and units are those of the tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from sweepscope.pipeline.simulate.catalogue import Accelerator, ModelShape

Tee = Literal["none", "default", "rank", "srun"]


@dataclass(frozen=True)
class Layout:
    """Parallel layout and batch. `ep` divides `dp` (as in Megatron)."""

    dp: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    gas: int = 1
    mbs: int = 1
    zero_stage: int = 0
    recompute: Literal["none", "selective", "full"] = "none"
    sequence_parallel: bool = False

    @property
    def num_gpus(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    @property
    def gbs(self) -> int:
        """Global batch in sequences."""
        return self.dp * self.gas * self.mbs


@dataclass(frozen=True)
class Noise:
    """Disturbances of the text that must not change what is read from it."""

    tee: Tee = "none"
    interleaved_ranks: bool = False
    colours: bool = False
    progress_bars: bool = False
    crlf: bool = False
    duplicate_lines: bool = False
    mojibake: bool = False


@dataclass(frozen=True)
class ExactStep:
    """One logged step before rounding. `step_time_s` is the mean since the previous logged step, `ts` its end."""

    step: int
    ts: datetime
    step_time_s: float
    loss: float
    grad_norm: float
    learning_rate: float
    mem_allocated_bytes: int
    mem_reserved_bytes: int


@dataclass(frozen=True)
class SimulatedStep:
    """One step line as printed."""

    step: int
    ts: datetime | None = None
    loss: float | None = None
    step_time_s: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu_logged: float | None = None
    mfu_logged: float | None = None
    mem_reserved_bytes: int | None = None
    grad_norm: float | None = None
    learning_rate: float | None = None
    consumed_tokens: int | None = None


@dataclass(frozen=True)
class SimulatedRun:
    """One run. `status` is a term of vocab.STATUS, `failure` a kind of it (see `failures`).

    `exact` has the steps logged before the end, `steps` the same as printed; `unfinished` is the step whose line was
    being written when the file stopped. `variant` names the dialect's version.
    `prologue`: the job script prints `nvidia-smi` and its launch command first. `stderr_apart`: failures go to another
    file. `nccl_version`: NCCL prints it before the first step (NCCL_DEBUG=VERSION).
    `seed` determines only host names, process ids and the positions of noise.
    """

    name: str
    sweep: str
    framework: str
    variant: str
    job_id: int
    seed: int
    model: ModelShape
    layout: Layout
    seq_len: int
    accelerator: Accelerator
    gpus_per_node: int
    num_nodes: int
    steps_planned: int
    log_interval: int
    started_at: datetime
    ended_at: datetime
    status: str
    failure: str = ""
    exact: tuple[ExactStep, ...] = ()
    steps: tuple[SimulatedStep, ...] = ()
    unfinished: ExactStep | None = None
    mem_peak_allocated_bytes: int | None = None
    mem_peak_reserved_bytes: int | None = None
    prologue: bool = True
    stderr_apart: bool = False
    nccl_version: str | None = None
    noise: Noise = field(default_factory=Noise)

    @property
    def num_gpus(self) -> int:
        return self.layout.num_gpus

    @property
    def gbs_tokens(self) -> int:
        return self.layout.gbs * self.seq_len

    @property
    def path(self) -> str:
        """Run directory relative to the sweep's root."""
        return f"{self.framework}/{self.sweep}/{self.name}"
