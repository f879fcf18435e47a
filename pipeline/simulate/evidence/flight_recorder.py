"""Dumps of PyTorch's flight recorder of a run that hung: one file per rank, `nccl_trace_rank_N`.

Source: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp, format 2.4. Plain values only, so that Python's pickle of
them needs no globals, as the writer's own.
"""

from __future__ import annotations

import calendar
import pickle
from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.simulate.evidence.last_words import Hang
from sweepscope.pipeline.simulate.renderers.protocol import cosmetics
from sweepscope.pipeline.simulate.truth import SimulatedRun

_TIMEOUT_MS = 600_000
_KEPT = 12
"""Records that each rank still has."""
_FRAMES = (
    ("all_gather_into_tensor", "/opt/env/site-packages/torch/distributed/distributed_c10d.py", 3800),
    ("unshard", "/opt/train/trainer.py", 512),
    ("train_step", "/opt/train/trainer.py", 233),
)


def dumps(run: SimulatedRun, hang: Hang, late_rank: int) -> Mapping[str, bytes]:
    """Content by file name. All ranks but `late_rank` wait in the collective, which that rank never began."""
    rng = cosmetics(run, "flight recorder")
    last, numel = hang.seq, hang.numel
    ended_ns = calendar.timegm(run.ended_at.timetuple()) * 10**9
    found = {}
    for rank in range(run.num_gpus):
        mine = last - 1 if rank == late_rank else last
        entries = []
        for seq in range(max(1, mine - _KEPT + 1), mine + 1):
            created_ns = ended_ns - (last - seq) * 40_000_000 - _TIMEOUT_MS * 10**6 + rng.randrange(900_000)
            entries.append(_entry(seq, numel, run.num_gpus, created_ns, is_done=seq < last))
        dump = {
            "version": "2.4",
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(run.num_gpus)))}},
            "pg_status": {
                "0": {
                    "last_enqueued_collective": mine,
                    "last_started_collective": mine,
                    "last_completed_collective": last - 1,
                }
            },
            "entries": entries,
        }
        found[f"nccl_trace_rank_{rank}"] = pickle.dumps(dump, protocol=2)
    return found


def _entry(seq: int, numel: int, ranks: int, created_ns: int, *, is_done: bool) -> dict[str, Any]:
    started = created_ns + 2_000_000
    return {
        "frames": [{"name": name, "filename": file, "line": line} for name, file, line in _FRAMES],
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:_all_gather_base",
        "time_created_ns": created_ns,
        "input_sizes": [[numel]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[numel * ranks]],
        "output_dtypes": ["BFloat16"],
        "state": "completed" if is_done else "started",
        "time_discovered_started_ns": started,
        "time_discovered_completed_ns": started + 11_000_000 if is_done else None,
        "retired": is_done,
        "timeout_ms": _TIMEOUT_MS,
        "is_p2p": False,
    }
