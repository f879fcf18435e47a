"""Rows of the memory tables for tests: snapshots by the real analysis of a simulated allocator, estimates by hand."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from sweepscope.pipeline.memory.analysis.analyse import analyse
from tests.pipeline.memory.allocator import Allocator, OutOfMemory, train

Row = dict[str, Any]
GIB, MIB = 1 << 30, 1 << 20

OOM_LINE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.00 GiB "
    "of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the "
    "allocated memory 70.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated."
)
"""A failure with enough free in pieces."""


def trained(*, layers: int = 4, steps: int = 2, capacity: int = 80 * GIB) -> Allocator:
    """An allocator after some training steps, or at the failure where it is too small."""
    allocator = Allocator(capacity=capacity)
    try:
        train(allocator, layers=layers, steps=steps)
    except OutOfMemory:
        pass
    else:
        if capacity < GIB:
            pytest.fail("the allocator was meant to be too small")
    return allocator


def memory_tables(
    run_dir: str, allocator: Allocator, *, name: str = "rank0.pickle", rank: int = 0
) -> dict[str, list[Row]]:
    """Rows of every memory table for one snapshot in a run's directory, in UTC microseconds as times."""
    tables = analyse(iter([pickle.dumps(allocator.snapshot())]))
    place = {"source_path": f"{run_dir}/{name}", "run_dir": run_dir, "sweep": "rocm", "rank": rank}
    alive = tables["memory_alive"]
    assert isinstance(alive, dict)
    rows = {table: [{**row, **place} for row in found] for table, found in tables.items() if isinstance(found, list)}
    columns = list(alive)
    rows["memory_alive"] = [
        {**dict(zip(columns, values, strict=True)), **place} for values in zip(*alive.values(), strict=True)
    ]
    for found in rows.values():
        for row in found:
            for column in ("ts", "peak_at", "recorded_from", "recorded_until"):
                row.pop(column, None)
    return rows


def merged(*parts: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Tables of several snapshots together."""
    tables: dict[str, list[Row]] = {}
    for part in parts:
        for name, rows in part.items():
            tables.setdefault(name, []).extend(rows)
    return tables


def memory_estimate(run_id: str, **gib: float) -> Row:
    """The estimated parts of one run in GiB; they add up."""
    parts = {"weights": 2, "gradients": 4, "optimizer": 8, "activations": 20, "logits": 3, "buffers": 1} | gib
    return {
        "run_id": run_id,
        "origin": "measured",
        "est_status": "ok",
        "est_mem_bytes": sum(parts.values()) * GIB,
        "est_mem_fragmentation_bytes": 0.05 * sum(parts.values()) * GIB,
        **{f"est_mem_{part}_bytes": size * GIB for part, size in parts.items()},
    }
