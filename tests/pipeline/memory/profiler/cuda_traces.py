"""Traces of GPUs, rendered after libkineto/src/output_json.cpp, whose kernels are known."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

START_US = 4_870_931_070_000
STEP_US, STEPS = 10_000, 3
OPERATIONS = {
    "AllReduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ReduceScatter": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "SendRecv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}
GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x4_tn_align8>(Params)"


@dataclass(frozen=True)
class Span:
    """A kernel or copy of a step, in microseconds from the step's begin."""

    kind: str
    step: int
    begin: int
    length: int


def spans_of(seed: int) -> list[Span]:
    """Kernels on two streams: GEMMs one after the other, collectives beside them, a copy now and then."""
    rng = random.Random(seed)  # noqa: S311 - a rendering, no secret
    found = []
    for step in range(STEPS):
        at = 0
        while at < STEP_US - 2_000:
            length = rng.randrange(50, 900)
            found.append(Span("gemm", step, at, length))
            at += length + rng.randrange(0, 400)
        at = rng.randrange(100, 900)
        while at < STEP_US - 2_000:
            length = rng.randrange(100, 1_500)
            found.append(Span(rng.choice(list(OPERATIONS)), step, at, length))
            at += length + rng.randrange(50, 1_500)
        found.append(Span("copy", step, STEP_US - 900, 300))
    return found


def rendered(spans: list[Span], *, rank: int, indent: int | None = 2) -> str:
    """The trace, in the order in which Kineto writes the fields of an event."""

    def event(category: str, name: str, tid: int, begin: float, length: float, **more: object) -> dict[str, object]:
        return {"ph": "X", "cat": category, "name": name, "pid": 0 if tid < 100 else 4242, "tid": tid} | {
            "ts": START_US + begin,
            "dur": length,
            "args": more,
        }

    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 4242, "tid": 0, "ts": START_US, "args": {"name": "python"}}
    ]
    for step in range(STEPS):
        begin = step * STEP_US
        events.append(event("user_annotation", f"ProfilerStep#{step + 7}", 4242, begin, STEP_US - 100))
        events.append(event("gpu_user_annotation", f"ProfilerStep#{step + 7}", 7, begin, STEP_US))
    for number, span in enumerate(spans):
        begin = span.step * STEP_US + span.begin
        launch = {"correlation": number, "stream": 7 if span.kind == "gemm" else 20, "device": rank}
        name = {"gemm": GEMM, "copy": "Memcpy HtoD (Pageable -> Device)"}.get(span.kind) or OPERATIONS[span.kind]
        category = "gpu_memcpy" if span.kind == "copy" else "kernel"
        events.append(event("cuda_runtime", "cudaLaunchKernel", 4242, begin, 5, correlation=number))
        events.append(event(category, name, int(launch["stream"]), begin, span.length, **launch))
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
    return json.dumps({**head, "traceEvents": events, "traceName": "trace.json"}, indent=indent)
