"""Records the dumps beside it. Needs torch, no dependency: `TORCH_FR_BUFFER_SIZE=200 python record.py FOLDER [order]`.

With `order`, one rank enters its pair's collective before that of all ranks, and the others the other way round.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

RANKS, ABSENT, OTHER_WAY = 4, 2, 1


def work(rank: int, folder: str, kind: str) -> None:
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace_json

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, timeout=timedelta(seconds=6))
    values, pair = torch.ones(1024), dist.new_group([0, 1])
    for _ in range(3):
        dist.all_reduce(values)
        dist.broadcast(values, 0)
        if rank < 2:
            dist.all_reduce(values[:16], group=pair)
    try:
        if kind == "order":
            two = [None, pair][:: -1 if rank == OTHER_WAY else 1]
            for group in two[: 2 if rank < 2 else 1]:
                dist.all_reduce(values, group=group)
        else:
            time.sleep(3) if rank == ABSENT else dist.all_reduce(values)
    except RuntimeError as error:
        sys.stderr.write(f"rank {rank}: {error}\n")
    dumped = _dump_fr_trace_json()
    Path(folder, f"nccl_trace_rank_{rank}.json").write_bytes(dumped if isinstance(dumped, bytes) else dumped.encode())
    os._exit(0)


if __name__ == "__main__":
    import torch.multiprocessing

    torch.multiprocessing.spawn(work, (sys.argv[1], "".join(sys.argv[2:])), nprocs=RANKS)
