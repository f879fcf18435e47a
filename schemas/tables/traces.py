"""Traces of torch.profiler and Nsight Systems: how long each step took, and what of the exchange ran behind compute."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import integer, number, text
from sweepscope.schemas.core.rules import within
from sweepscope.schemas.core.table import Table

TRACE_STEPS = Table(
    name="trace_steps",
    description="Each step in a trace of torch.profiler or Nsight Systems: its time, and what the GPU did in it. "
    "Joined to `runs` by run_dir. `hidden_exchange_share` is what Holistic Trace Analysis calls overlap.",
    grain="one row per file, process and step",
    primary_key=("source_path", "pid", "step"),
    nullable_key=("pid",),
    rules=(
        within("compute_s", "device_busy_s"),
        within("exchange_s", "device_busy_s"),
        within("exposed_exchange_s", "exchange_s"),
    ),
    redefines=("rank", "pid", "step", "duration_s"),
    columns=columns(
        "source_path run_dir sweep",
        integer("rank", "id", "rank that the trace states, else that of the file's name"),
        integer("pid", "id", "process, in reports that hold several (Nsight Systems); NULL otherwise"),
        integer("step", "count", "number of the step, as the profiler counts them: of a schedule, its own"),
        number("duration_s", "s", "time of the step, between the marks of the profiler", positive=True),
        number("device_busy_s", "s", "time in which any kernel or copy ran on the GPU; NULL without a GPU", minimum=0),
        number("compute_s", "s", "time in which a kernel ran that is none of NCCL or RCCL", minimum=0),
        number("exchange_s", "s", "time in which a kernel of NCCL or RCCL ran", minimum=0),
        number("exposed_exchange_s", "s", "the part of it in which no kernel computed", minimum=0),
        number("hidden_exchange_share", "fraction", "the other part, as a share; NULL without exchange", minimum=0),
    ),
)

TRACE_COLLECTIVES = Table(
    name="trace_collectives",
    description="Kernels of NCCL or RCCL in a trace of torch.profiler or Nsight Systems, by operation.",
    grain="one row per file, process and operation",
    primary_key=("source_path", "pid", "trace_op"),
    nullable_key=("pid",),
    redefines=("rank", "pid", "calls"),
    columns=columns(
        "source_path run_dir sweep",
        integer("rank", "id", "rank that the trace states, else that of the file's name"),
        integer("pid", "id", "process, in reports that hold several (Nsight Systems); NULL otherwise"),
        text("trace_op", "the collective, as NCCL names it in its kernels"),
        integer("calls", "count", "kernels"),
        integer("traced_steps", "count", "steps of the trace; NULL where it marks none"),
        number("kernel_s", "s", "sum of their times; several may run at once", minimum=0),
        number("longest_kernel_s", "s", "the longest of them: with one that waits, all do", minimum=0),
    ),
)

TABLES = (TRACE_STEPS, TRACE_COLLECTIVES)
