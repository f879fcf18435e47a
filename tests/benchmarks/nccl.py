"""How fast NCCL output is read, beside `grep -c`: COLL lines, the lines of initialisation, and many small logs.

One core, two workers, compressed, every call written out; and in how much memory. Each figure is of a process of its
own, so that its memory and processor time are nobody else's. Polars has as many threads as there are workers: one
where a rate per core is meant. A rate by processor time holds on a busy machine, too; what two workers gain is told by
the clock only, which takes two free cores.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from tests.benchmarks.logs import corpus, cpu_seconds, grown
from tests.paths import ROOT
from tests.picotron_runs import picotron_run
from tests.pipeline.nccl.nccl_logs import Job, render

BIG_MB = 1_000
INFO_MB = 200
MOST_LINKS = 0.99
"""Some connections of real logs are glued or cut, and some lines with ` via ` are of something else."""
SMALL_FILES = 500
RANKS = 8
OPS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "Recv")
_CHILD = """
import contextlib, json, resource, sys, time
from sweepscope.pipeline.io.process_pool import ProcessPool
workers = int(sys.argv[2])
with ProcessPool("sweepscope.pipeline.inspection.file_regions:scan_any", workers) as scanners:
    from sweepscope.pipeline.inspection.calls_parquet import CallsFile
    from sweepscope.pipeline.inspection.nccl_scan import read_network
    begin, cpu = time.perf_counter(), time.process_time()
    with CallsFile(sys.argv[3]) if len(sys.argv) > 3 else contextlib.nullcontext() as calls:
        tables, _ = read_network([sys.argv[1]], scanners=scanners, calls=calls)
    s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
own, others = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({
    "s": s, "cpu_s": cpu_s, "rss_mb": own + (workers - 1) * others,
    "calls": int(tables["nccl_collectives"]["calls"].sum()), "links": int(tables["nccl_links"]["link_channels"].sum()),
}))
"""
_BATCH = """
import json, sys, time
from sweepscope.pipeline.ingest.plan import find
from sweepscope.pipeline.ingest.read_batch import read_batch
found = find([sys.argv[1]])
begin = time.process_time()
batch = read_batch(found)
files = batch.other.get("nccl_files")
print(json.dumps({"cpu_s": time.process_time() - begin, "files": 0 if files is None else files.height}))
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


def info_log(scratch: Path, megabytes: int) -> Path:
    """What 64 ranks print when they begin, again and again: a rank and communicator per 1 kB, so half of it is rows."""
    text = "".join(render(Job(nodes=8, gpus=8, per_node=True, seed=seed)).text() for seed in range(8)).encode()
    return grown(text, megabytes * 1_000_000, scratch / "nccl.node0000.5000")


def real_init_log(scratch: Path, megabytes: int) -> Path | None:
    """Real logs that consist of NCCL's lines for a third or more, but not of COLL lines, again and again."""
    root = corpus()
    if root is None:
        return None
    logs = [path.read_bytes() for path in sorted((root.parent / "nccl").glob("*.log"))]
    text = b"".join(
        data if data.endswith(b"\n") else data + b"\n"
        for data in logs
        if 3 * data.count(b"NCCL INFO") > data.count(b"\n") > 4 * data.count(b": opCount ")
    )
    return grown(text, megabytes * 1_000_000, scratch / "nccl.node0000.6000") if text else None


def measure(path: Path, *, workers: int, threads: int, calls: Path | None = None) -> dict[str, Any]:
    """Seconds, processor seconds and peak memory of one process that reads the file."""
    return _run(_CHILD, str(path), str(workers), *([str(calls)] if calls else []), threads=threads)


def _run(program: str, *arguments: str, threads: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "POLARS_MAX_THREADS": str(threads), "PYTHONPATH": str(ROOT)},
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def nccl_rates(scratch: Path, megabytes: int = BIG_MB) -> pl.DataFrame:
    """One row per way of reading a log."""
    plain, packed = write_logs(scratch, megabytes)
    size = plain.stat().st_size / 1e6
    counted = int(subprocess.run(["grep", "-c", "opCount", plain], capture_output=True, check=False).stdout)
    rows: list[tuple[object, ...]] = [
        ("COLL, grep -c", None, size / cpu_seconds("grep", "-c", "opCount", str(plain)), None, None)
    ]
    alone_s: dict[Path, float] = {}
    for name, path, workers, calls in (
        ("COLL", plain, 1, None),
        ("COLL, .zst", packed, 1, None),
        ("COLL, 2 workers", plain, 2, None),
        ("COLL, .zst, 2 workers", packed, 2, None),
        ("COLL, every call to Parquet", plain, 1, scratch / "calls.parquet"),
    ):
        measured = measure(path, workers=workers, threads=workers, calls=calls)
        if measured["calls"] != counted:
            raise AssertionError(f"{name}: {measured['calls']:,} calls read of {counted:,}")
        alone_s.setdefault(path, measured["s"])
        gain = alone_s[path] / measured["s"] if workers > 1 else None
        rows.append((name, size / measured["s"], size / measured["cpu_s"], measured["rss_mb"], gain))
    plain.unlink()
    packed.unlink()
    rows += init_rates(scratch, megabytes)
    columns = ["NCCL log", "MB/s", "MB per CPU s", "peak MB", "times as fast as one worker"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def init_rates(scratch: Path, megabytes: int) -> list[tuple[object, ...]]:
    """Rows of logs without COLL lines, generated and real, each beside `grep -c` for its connections."""
    rows: list[tuple[object, ...]] = []
    for name, log in (
        ("initialisation, 1 kB per rank", info_log(scratch, min(megabytes, INFO_MB))),
        ("initialisation, real logs", real_init_log(scratch, megabytes)),
    ):
        if log is None:
            continue
        size = log.stat().st_size / 1e6
        links = int(subprocess.run(["grep", "-c", " via ", log], capture_output=True, check=False).stdout)
        rows.append((f"{name}, grep -c", None, size / cpu_seconds("grep", "-c", " via ", str(log)), None, None))
        measured = measure(log, workers=1, threads=1)
        if not MOST_LINKS * links <= measured["links"] <= links:
            raise AssertionError(f"{name}: {measured['links']:,} links read of {links:,}")
        rows.append((name, size / measured["s"], size / measured["cpu_s"], measured["rss_mb"], None))
        log.unlink()
    return rows


def small_logs(scratch: Path) -> pl.DataFrame:
    """Run directories with and without NCCL lines in their logs, as an ingest reads them."""
    rows = []
    for name in ("without NCCL lines", "with NCCL lines"):
        place, size = scratch / name.replace(" ", "-"), 0
        for number in range(SMALL_FILES):
            log = next(picotron_run(place / f"run{number:03d}").glob("log_*.out"))
            if name.startswith("with "):
                log.write_text(render(Job(nodes=1, gpus=2, seed=number)).text() + log.read_text())
            size += log.stat().st_size
        fastest = min((_run(_BATCH, str(place), threads=1) for _ in range(3)), key=lambda one: float(one["cpu_s"]))
        if fastest["files"] != (SMALL_FILES if name.startswith("with ") else 0):
            raise AssertionError(f"{fastest['files']} files with NCCL content")
        rows.append((name, SMALL_FILES, size / 1e6, fastest["cpu_s"]))
    return pl.DataFrame(rows, schema=["small logs", "runs", "MB", "CPU s"], orient="row")
