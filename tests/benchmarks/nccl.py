"""How fast a COLL-heavy NCCL log is read, beside `grep -c`: one core, two workers, compressed, and in how much memory.

Each figure is of a process of its own, so that its memory and its processor time are nobody else's. Threads of polars
are set to one where a rate per core is meant.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

BIG_MB = 1_000
RANKS = 8
OPS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "Recv")
_CHILD = """
import json, resource, sys, time
from pipeline.read_nccl import read_network
begin, cpu = time.perf_counter(), time.process_time()
tables, _ = read_network([sys.argv[1]], workers=int(sys.argv[2]))
print(json.dumps({
    "s": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu,
    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "calls": int(tables["nccl_collectives"]["calls"].sum()),
}))
"""


def coll_block(target_bytes: int, seed: int = 1) -> bytes:
    """Lines of NCCL_DEBUG_SUBSYS=COLL from RANKS ranks, about that many bytes."""
    rng = random.Random(seed)  # noqa: S311  # the same log every time
    lines, size, calls = [], 0, [0] * RANKS
    while size < target_bytes:
        rank, op = rng.randrange(RANKS), rng.choice(OPS)
        calls[rank] += 1
        line = (
            f"node{rank // 4:04d}:{4000 + rank}:{4000 + rank} [{rank % 4}] NCCL INFO {op}: opCount {calls[rank]:x} "
            f"sendbuff 0x{rng.getrandbits(47):x} recvbuff 0x{rng.getrandbits(47):x} "
            f"count {rng.choice((1, 1024, 65536, 1048576, 25610152))} datatype {rng.choice((7, 9))} op 0 root 0 "
            f"comm 0x55d0ab{rank:04x}00 [nranks={RANKS}] stream 0x55d0aa{rank:04x}10\n"
        )
        lines.append(line)
        size += len(line)
    return "".join(lines).encode()


def write_logs(scratch: Path, megabytes: int) -> tuple[Path, Path]:
    """The same log plain and as .zst. Blocks are larger than zstd's window: the repeats cost it full price."""
    plain, packed = scratch / "nccl.node0000.4000", scratch / "packed" / "nccl.node0000.4000.zst"
    packed.parent.mkdir(exist_ok=True)
    block = coll_block(16_000_000)
    with plain.open("wb") as out, zstandard.open(packed, "wb") as out_packed:
        for _ in range(max(1, megabytes // 16)):
            out.write(block)
            out_packed.write(block)
    return plain, packed


def measure(path: Path, *, workers: int, threads: int) -> dict[str, Any]:
    """Seconds, processor seconds and peak memory of one process that reads the file."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), str(workers)], capture_output=True, text=True, check=True,
        env={**os.environ, "POLARS_MAX_THREADS": str(threads), "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def nccl_rates(scratch: Path, megabytes: int = BIG_MB) -> pl.DataFrame:
    """One row per way of reading the log."""
    plain, packed = write_logs(scratch, megabytes)
    size = plain.stat().st_size / 1e6
    begin = time.perf_counter()
    counted = int(subprocess.run(["grep", "-c", "opCount", plain], capture_output=True, check=False).stdout)
    rows = [("grep -c", size / (time.perf_counter() - begin), None, None)]
    for name, path, workers, threads in (
        ("1 core", plain, 1, 1),
        ("1 core, .zst", packed, 1, 1),
        ("2 workers", plain, 2, 1),
        ("2 workers, .zst", packed, 2, 1),
    ):
        told = measure(path, workers=workers, threads=threads)
        if told["calls"] != counted:
            raise AssertionError(f"{name}: {told['calls']:,} calls read of {counted:,}")
        rows.append((name, size / told["s"], size / told["cpu_s"], told["rss_mb"]))
    plain.unlink()
    packed.unlink()
    schema = ["nccl COLL log", "MB/s", "MB per CPU s", "peak MB"]
    return pl.DataFrame(rows, schema=schema, orient="row")
