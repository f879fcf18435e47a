"""Words of the views on incidents and nodes."""

from __future__ import annotations

from sweepscope.schemas.vocab import EVENT_KIND
from sweepscope.schemas.vocab.nccl import HANG_LINE, SEVERITY
from sweepscope.schemas.vocab.scheduler import JOB_STATE

ENTRY_SOURCE: dict[str, str] = {
    "log": "the run's own log",
    "nccl": "NCCL's output and PyTorch's watchdog",
    "flight_recorder": "dumps of PyTorch's flight recorder",
    "memory": "allocator snapshots and samples of nvidia-smi or DCGM",
    "scheduler": "the scheduler's table",
}

ENTRY_KIND: dict[str, str] = {
    **EVENT_KIND,
    "first_step": "first step that the log has",
    "last_step": "last step that the log has",
    **{f"hang_{word}": meaning for word, meaning in HANG_LINE.items()},
    **{f"nccl_{word}": f"a warning of NCCL: {meaning}" for word, meaning in SEVERITY.items()},
    "suspect": "what the lines or dumps of a hang say on its cause",
    "last_collective": "the last collective that a rank's dump holds",
    "memory_peak": "most memory that an allocator snapshot shows",
    "memory_oom": "an allocation failed, by an allocator snapshot",
    "gpu_peak": "most memory in use that a monitor sampled",
    "gpus_idle": "the last sample of a monitor in which a GPU computed",
    "job_submitted": "the job entered the queue",
    "job_started": "the job started",
    **{f"job_{word}": f"the job {meaning}" for word, meaning in JOB_STATE.items()},
}

HOST_SOURCE: dict[str, str] = {
    "scheduler": "the scheduler's table, or the log's list of hosts",
    "log": "a line that healthy runs print, too",
    "nccl": "NCCL's initialisation",
    "failure": "a line on a failure alone; such a node is in no rate",
}
