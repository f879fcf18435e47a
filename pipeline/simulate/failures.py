"""Last lines of failed runs, as torch, NCCL, torchrun, Slurm and Python print them.

`TAILS[status][failure]` gives the lines for one way of reaching a status. Sources: torch
c10/cuda/CUDACachingAllocator.cpp (three ages of the OOM message), torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
(checkTimeout), torch/distributed/elastic (ChildFailedError, SignalException), Slurm's slurmstepd. Traceback frames name
functions, not code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import timedelta

from sweepscope.pipeline.simulate.console import LogLine, agent, scheduler, worker
from sweepscope.pipeline.simulate.scene import Scene, c10_stamp, child_failed, traceback
from sweepscope.pipeline.simulate.truth import SimulatedRun

_GIB = 2**30


Tail = Callable[[Scene], list[LogLine]]


_NO_TRACE = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def _oom(message: Callable[[Scene, int], str]) -> Tail:
    def tail(scene: Scene) -> list[LogLine]:
        lines: list[LogLine] = []
        for rank in scene.ranks:
            lines += traceback(scene, rank, ("main", "train_step", "forward"), message(scene, rank))
        return lines + child_failed(scene, 1, _NO_TRACE)

    return tail


def _sizes(scene: Scene) -> tuple[float, float, float, float]:
    """GiB: capacity, allocated, free, and what the failing request asked for."""
    capacity = scene.run.accelerator.memory_bytes / _GIB
    free = scene.rng.uniform(0.01, 0.9)
    return capacity, capacity - free - scene.rng.uniform(0.5, 3), free, free + scene.rng.uniform(0.1, 4)


def _oom_1_12(scene: Scene, rank: int) -> str:
    capacity, allocated, free, asked = _sizes(scene)
    return (
        f"RuntimeError: CUDA out of memory. Tried to allocate {asked:.2f} GiB (GPU {rank % scene.run.gpus_per_node}; "
        f"{capacity:.2f} GiB total capacity; {allocated:.2f} GiB already allocated; {free * 1024:.2f} MiB free; "
        f"{capacity - free:.2f} GiB reserved in total by PyTorch)"
    )


def _oom_2_0(scene: Scene, rank: int) -> str:
    return _oom_1_12(scene, rank).replace("RuntimeError", "torch.cuda.OutOfMemoryError") + (
        " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  "
        "See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
    )


def _oom_2_5(scene: Scene, rank: int) -> str:
    capacity, allocated, free, asked = _sizes(scene)
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked:.2f} GiB. "
        f"GPU {rank % scene.run.gpus_per_node} has a total capacity of {capacity:.2f} GiB of which "
        f"{free * 1024:.2f} MiB is free. Including non-PyTorch memory, this process has {capacity - free:.2f} GiB "
        "memory in use. Of the "
        f"allocated memory {allocated:.2f} GiB is allocated by PyTorch, and {scene.rng.uniform(20, 900):.2f} MiB is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
        "See documentation for Memory Management"
    )


def _hang(with_sizes: bool) -> Tail:
    def tail(scene: Scene) -> list[LogLine]:
        seq = 3 if not scene.run.exact else 40 * len(scene.run.exact) + scene.rng.randrange(40)
        numel = scene.rng.randrange(1 << 12, 1 << 28)
        sizes = f"NumelIn={numel}, NumelOut={numel * scene.run.layout.dp}, " if with_sizes else ""
        lines = []
        for rank in scene.ranks:
            ran = 600_000 + scene.rng.randrange(10, 900)
            work = (
                f"WorkNCCL(SeqNum={seq}, OpType=_ALLGATHER_BASE, {sizes}Timeout(ms)=600000) ran for {ran} milliseconds"
            )
            stamp = f"[rank{rank}]:[E{c10_stamp(scene)} ProcessGroupNCCL.cpp"
            lines += worker(
                [
                    f"{stamp}:616] [Rank {rank}] Watchdog caught collective operation timeout: {work} "
                    "before timing out.",
                    f"{stamp}:632] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
                    "terminate called after throwing an instance of 'c10::DistBackendError'",
                ],
                rank,
            )
        return lines + child_failed(scene, -6, f"Signal 6 (SIGABRT) received by PID {scene.pid}")

    return tail


def _nccl_system(scene: Scene) -> list[LogLine]:
    cpp = "/opt/pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93"
    lines: list[LogLine] = []
    for rank in scene.ranks:
        error = (
            f"torch.distributed.DistBackendError: NCCL error in: {cpp}, unhandled system error "
            "(run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3"
        )
        lines += traceback(scene, rank, ("main", "train_step", "all_reduce"), error)
        lines += worker(
            [
                f"[rank{rank}]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
                "device error. "
            ],
            rank,
        )
    return lines + child_failed(scene, 1, _NO_TRACE)


def _crash(error: str, frames: tuple[str, ...]) -> Tail:
    return lambda scene: [*traceback(scene, scene.rank, frames, error), *child_failed(scene, 1, _NO_TRACE)]


def _segfault(scene: Scene) -> list[LogLine]:
    lines = worker(
        ["Fatal Python error: Segmentation fault", "", "Current thread 0x00007f029cf9e640 (most recent call first):"],
        scene.rank,
    )
    return lines + child_failed(scene, -11, f"Signal 11 (SIGSEGV) received by PID {scene.pid}")


def _slurm(reason: str) -> Tail:
    def tail(scene: Scene) -> list[LogLine]:
        job, when = scene.run.job_id, f"{scene.at:%Y-%m-%dT%H:%M:%S}"
        ends = f"ON {scene.host} CANCELLED AT {when}{reason} ***"
        return scheduler(
            [
                "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.",
                f"slurmstepd: error: *** STEP {job}.0 {ends}",
                f"slurmstepd: error: *** JOB {job} {ends}",
            ]
        )

    return tail


def _signal(number: int, name: str) -> Tail:
    """torchrun received a signal, from Ctrl-C or `kill`."""

    def tail(scene: Scene) -> list[LogLine]:
        shown = scene.rng.choice((f"Signals.{name}", str(number)))  # the enum's name; its number from Python 3.11 on
        stamp = (
            f"W{scene.at:%m%d %H:%M:%S}.{scene.rng.randrange(1000):03d}000 {scene.pid - 50} torch/distributed/elastic"
        )
        lines = agent(
            [
                f"{stamp}/agent/server/api.py:704] Received {shown} death signal, shutting down workers",
                f"{stamp}/multiprocessing/api.py:900] Sending process {scene.pid} closing signal {name}",
            ]
        )
        if name == "SIGINT":
            lines += traceback(scene, scene.rank, ("main", "train_step"), "KeyboardInterrupt")
        kind = "torch.distributed.elastic.multiprocessing.api.SignalException"
        error = f"{kind}: Process {scene.pid - 50} got signal: {number}"
        return lines + agent(
            ["Traceback (most recent call last):", '  File "/opt/env/bin/torchrun", line 8, in <module>', error]
        )

    return tail


def _host_oom(scene: Scene) -> list[LogLine]:
    job = scene.run.job_id
    killed = child_failed(scene, -9, f"Signal 9 (SIGKILL) received by PID {scene.pid}")
    return killed + scheduler(
        [
            f"slurmstepd: error: Detected 1 oom_kill event in StepId={job}.0. "
            "Some of the step tasks have been OOM Killed.",
            f"srun: error: {scene.host}: task 0: Out Of Memory",
        ]
    )


def _nothing(_scene: Scene) -> list[LogLine]:
    return []


TAILS: Mapping[str, Mapping[str, Tail]] = {
    "completed": {
        "": _nothing,
        # A failure after the last step leaves the run completed.
        "traceback_after": _crash("BrokenPipeError: [Errno 32] Broken pipe", ("main", "finish", "close")),
        "time_limit_after": _slurm(" DUE TO TIME LIMIT"),
    },
    "oom": {"torch_1_12": _oom(_oom_1_12), "torch_2_0": _oom(_oom_2_0), "torch_2_5": _oom(_oom_2_5)},
    "hang": {"watchdog_old": _hang(False), "watchdog": _hang(True)},
    "nccl_error": {"system": _nccl_system},
    "crash": {
        "assertion": _crash(
            "AssertionError: expected all gradients to be finite", ("main", "train_step", "clip_grad_norm")
        ),
        "value": _crash(
            "ValueError: num_attention_heads must be divisible by num_key_value_heads", ("main", "build_model")
        ),
        "segfault": _segfault,
    },
    "host_oom": {"slurm": _host_oom},
    "timeout": {"time_limit": _slurm(" DUE TO TIME LIMIT")},
    "cancelled": {"scancel": _slurm(""), "ctrl_c": _signal(2, "SIGINT"), "sigterm": _signal(15, "SIGTERM")},
    "node_fail": {"slurm": _slurm(" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")},
    "preempted": {"slurm": _slurm(" DUE TO PREEMPTION")},
    "truncated": {"line_end": _nothing, "mid_line": _nothing},  # `render` truncates the line
}


def tail(run: SimulatedRun, script: str, rng: random.Random) -> list[LogLine]:
    """The lines that follow the last logged step. Raises KeyError for a status or failure without a tail."""
    pid = rng.randrange(20_000, 4_000_000)
    host = f"gpu-{run.job_id % 97:03d}"
    at = run.ended_at - timedelta(microseconds=run.ended_at.microsecond)
    scene = Scene(run, script, at, rng.randrange(run.num_gpus), host, pid, rng)
    return TAILS[run.status][run.failure](scene)
