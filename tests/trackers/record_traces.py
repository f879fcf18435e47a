"""Write the traces beside this file anew: two processes of torch on the CPU, with gloo, and one alone.

    python -m venv build/traces
    build/traces/bin/pip install torch
    build/traces/bin/python tests/trackers/record_traces.py

`traces/NAME.pt.trace.json.gz` is what the profiler exports, `NAME.json` the steps by its own `events()`.
Recorded with torch 2.13.0.
"""

# mypy: ignore-errors

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

HERE = Path(__file__).parent / "traces"
OPTIONS = {"stacks": {"with_stack": True}, "shapes": {"record_shapes": True}, "memory": {"profile_memory": True}}
"""Recordings of one process, with what the profiler is asked to keep besides."""


def train(model: torch.nn.Module, name: str, about: dict, **options: bool) -> None:
    """Five steps, of which the profiler keeps the last three: `NAME.pt.trace.json.gz` and `NAME.json`."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def save(profiler: profile) -> None:
        path = Path(tempfile.mkdtemp()) / "trace.json"
        profiler.export_chrome_trace(str(path))
        text = re.sub(r'"host_name": "[^"]*"', '"host_name": "host"', path.read_text())
        for folder, shown in ((HERE.parent, "/work"), (Path(torch.__file__).parents[1], "/lib")):
            text = text.replace(str(folder), shown)  # nothing of the machine of the recording
        (HERE / f"{name}.pt.trace.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        steps = [one for one in profiler.events() if one.name.startswith("ProfilerStep")]
        steps.sort(key=lambda one: one.time_range.start)
        own = {**about, "durations_us": [one.time_range.elapsed_us() for one in steps]}
        (HERE / f"{name}.json").write_text(json.dumps(own) + "\n")

    plan = schedule(wait=1, warmup=1, active=3)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=save, **options) as profiler:
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(4, 16)).sum().backward()
            optimizer.step()
            profiler.step()


def work(rank: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29617")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    train(torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4)), f"rank{rank}", {"rank": rank})
    dist.destroy_process_group()


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    torch.multiprocessing.spawn(work, nprocs=2)
    for each, kept in OPTIONS.items():
        train(torch.nn.Linear(16, 4), each, {"rank": None}, **kept)
