"""Names of what a timeline's entries report, where the word of the vocabulary is not one."""

from __future__ import annotations

from sweepscope.dashboard.format.numbers import capital

_NAMES = {
    "oom": "GPU out of memory",
    "host_oom": "Host out of memory",
    "hang": "Collective timed out",
    "nccl_error": "NCCL error",
    "child_failed": "Workers failed",
    "node_fail": "Node failed",
    "sigkill": "SIGKILL",
    "sigterm": "SIGTERM",
    "nan_loss": "Loss is NaN",
    "timeout": "Time limit",
    "suspect": "Suspect of the hang",
    "unread": "Last line",
    "gpu_peak": "Peak in use",
    "gpus_idle": "GPUs idle from here",
    "memory_peak": "Allocator's peak",
    "memory_oom": "Allocation failed",
    "hang_timeout": "Rank gave up",
    "hang_status": "How far a rank was",
    "hang_dump": "How far a rank was",
    "hang_stuck": "Watchdog stuck",
    "hang_died": "Rank died",
    "hang_lags": "Rank lags",
    "nccl_fatal": "NCCL failure",
    "nccl_follower": "Other ranks follow",
    "nccl_fallback": "NCCL falls back",
    "nccl_unknown": "NCCL warning",
    "nccl_finding": "NCCL finding",
    "oom_by_others": "Memory held by others",
    "gpu_shared": "GPU shared",
    "gpu_busy": "GPU busy",
}


def kind_name(kind: str) -> str:
    """What an entry of a kind reports, in words.

    >>> kind_name("oom"), kind_name("job_started"), kind_name("last_step")
    ('GPU out of memory', 'Job started', 'Last step')
    """
    return _NAMES.get(kind) or capital(kind.replace("_", " "))
