"""Samples of `nvidia-smi --query-gpu=... --format=csv -l 10` on the first node of a run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from sweepscope.pipeline.simulate.renderers.protocol import cosmetics
from sweepscope.pipeline.simulate.truth import SimulatedRun

_FIELDS = (
    "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], power.draw [W], "
    "temperature.gpu"
)
_MIB = 2**20
_CONTEXT_MIB = 1_240
"""What the driver counts beside PyTorch's allocator."""
_MOST = 40
"""Samples of each GPU."""
IDLE_W, LIMIT_W = 85.0, {"A100": 400.0, "H100": 700.0, "B200": 1_000.0}


def samples(run: SimulatedRun) -> str:
    """The CSV. While steps are made the power is near the limit; before, the cards idle."""
    return "\n".join([_FIELDS, *_rows(run), ""])


def _rows(run: SimulatedRun) -> Iterator[str]:
    rng = cosmetics(run, "nvidia-smi -l")
    limit = next(watts for name, watts in LIMIT_W.items() if run.accelerator.name.startswith(name))
    seconds = (run.ended_at - run.started_at).total_seconds()
    pause = max(10.0, seconds / _MOST)
    total = run.accelerator.memory_bytes // _MIB + 400
    held = max((step.mem_reserved_bytes for step in run.exact), default=0) // _MIB + _CONTEXT_MIB
    first = 30.0
    for number in range(int(seconds / pause) + 1):
        at = run.started_at + timedelta(seconds=number * pause)
        is_busy = number * pause >= first and bool(run.exact)
        for gpu in range(run.gpus_per_node):
            used = min(held + 16 * gpu, total - 64) if is_busy else _CONTEXT_MIB - 700
            busy = rng.randrange(94, 101) if is_busy else 0
            watts = (0.88 * limit + rng.gauss(0, 0.02 * limit)) if is_busy else IDLE_W + rng.gauss(0, 3)
            heat = 34 + (watts / limit) * 32 + gpu % 3
            stamp = f"{at:%Y/%m/%d %H:%M:%S}.{rng.randrange(1000):03d}"
            yield (
                f"{stamp}, {gpu}, {run.accelerator.device_name}, {used} MiB, {total} MiB, {busy} %, {watts:.2f} W, "
                f"{heat:.0f}"
            )
