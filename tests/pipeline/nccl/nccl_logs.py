"""Renders NCCL debug logs as different versions print them, with what a reader must find in them.

Formats are those of the NCCL sources (src/debug.cc, init.cc, enqueue.cc, transport/*.cc); nothing here is taken from a
log. One job: `nodes` x `gpus` ranks, one process each, one communicator of all ranks and, if asked for, one per node.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

VERSIONS = ("2.4.8", "2.7.8", "2.12.12", "2.16.2", "2.18.5", "2.21.5", "2.24.3", "2.29.2", "2.30.3", "2.22.3-RCCL")
OPS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")


@dataclass
class Job:
    """What to render; `lines` grows as it is rendered."""

    version: str = "2.21.5"
    nodes: int = 2
    gpus: int = 4
    per_node: bool = False
    calls: int = 0
    warns: int = 0
    seed: int = 0
    launcher: str = ""
    lines: list[str] = field(default_factory=list)
    calls_by_op: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def number(self) -> tuple[int, int]:
        """Version as numbers."""
        major, minor = self.version.split("-")[0].split(".")[:2]
        return int(major), int(minor)

    @property
    def nranks(self) -> int:
        """Ranks of the job."""
        return self.nodes * self.gpus

    @property
    def communicators(self) -> int:
        """Communicators of the job."""
        return 1 + (self.nodes if self.per_node else 0)

    def text(self) -> str:
        """The log."""
        return "".join(f"{line}\n" for line in self.lines)


def render(job: Job) -> Job:
    """Fill `job.lines`."""
    rng = random.Random(job.seed)  # noqa: S311  # the same log every time
    is_rccl = job.version.endswith("RCCL")
    banner = "RCCL version : 2.22.3-HEAD:271856d" if is_rccl else f"NCCL version {job.version}+cuda12.4"
    if is_rccl or job.number >= (2, 29):
        _say(job, 0, banner)
    else:
        job.lines.append(banner)
    hashes = {}
    for ranks in _groups(job):
        hashes[ranks] = f"0x{rng.getrandbits(63):x}"
        for rank in rng.sample(ranks, len(ranks)):
            _init(job, rank, ranks, hashes[ranks])
    for n in range(job.warns):
        job.lines.append("")
        text = (
            f"NET/IB : Got completion from peer 10.0.0.{n % 9}<4{n:03d}> with status=12 opcode=0 len=0 vendor err 129"
        )
        _say(job, n % job.nranks, text, level="WARN", place="transport/net_ib.cc:1295 ")
    _calls(job, rng)
    return job


def _groups(job: Job) -> list[tuple[int, ...]]:
    whole = tuple(range(job.nranks))
    nodes = [tuple(range(n * job.gpus, (n + 1) * job.gpus)) for n in range(job.nodes)]
    return [whole, *nodes] if job.per_node else [whole]


def pointer(rank: int, ranks: tuple[int, ...]) -> str:
    """The address of a communicator in a rank's process."""
    return f"0x55d0{len(ranks):02x}{min(ranks):02x}{rank:04x}"


def _say(job: Job, rank: int, text: str, *, level: str = "INFO", place: str = "") -> None:
    dev = rank % job.gpus
    label = job.launcher.format(rank=rank)
    job.lines.append(f"{label}node-{rank // job.gpus}:{4000 + rank}:{4000 + rank} [{dev}] {place}NCCL {level} {text}")


def _init(job: Job, rank: int, ranks: tuple[int, ...], comm_hash: str) -> None:
    local, dev, n = ranks.index(rank), rank % job.gpus, len(ranks)
    v, address = job.number, pointer(rank, ranks)
    bus = f"{0x10 + dev:x}000"
    head = f"comm {address} rank {local} nranks {n} cudaDev {dev}"
    if v <= (2, 4):
        head += f" nvmlDev {dev}"
    else:
        head += f" nvmlDev {dev} busId {bus}" if v >= (2, 18) else f" busId {bus}"
        head += f" commId {comm_hash}" if v >= (2, 16) else ""
    api = "ncclCommInitRank " if v >= (2, 21) else ""
    _say(job, rank, "Using network IB")
    if v >= (2, 18):
        label = f"[Rank {local}] " if v >= (2, 29) else ""
        _say(job, rank, f"{label}{api}{head} - Init START")
    if v >= (2, 20):
        nodes = len({other // job.gpus for other in ranks})
        _say(
            job,
            rank,
            f"comm {address} rank {local} nRanks {n} nNodes {nodes} localRanks {job.gpus} localRank 0 MNNVL 0",
        )
    if local == 0:
        for channel in range(4):
            order = " ".join(str(other) for other in range(n))
            _say(job, rank, f"Channel {channel:02d}{'/04' if v > (2, 4) else ''} : {order}")
    peer = (local + 1) % n
    is_far = ranks[peer] // job.gpus != rank // job.gpus
    inside = "P2P/CUMEM/read" if v >= (2, 18) else "P2P/IPC"
    slash = "/0" if v >= (2, 11) else ""
    for channel in range(4):
        ends = f"Channel {channel:02d}{slash} : {local}[{dev}] -> {peer}[{ranks[peer] % job.gpus}]"
        if v <= (2, 4):
            ends = f"Ring {channel:02d} : {local} -> {peer}" if is_far else ends.replace("Channel", "Ring")
        tail = f" comm {address} nRanks {n:02d}" if job.version.endswith("RCCL") else ""
        link = f"{ends} [send] via NET/IB/{channel % 2}/GDRDMA" if is_far else f"{ends} via {inside}"
        _say(job, rank, link + tail)
    _say(job, rank, "Connected all rings")
    nvls = "0 nvls channels, " if v >= (2, 17) else ""
    collnet = "0 collnet channels, " if v >= (2, 20) else ""
    _say(job, rank, f"4 coll channels, {collnet}{nvls}8 p2p channels, 2 p2p channels per peer")
    _say(job, rank, f"{api}{head} - Init COMPLETE")
    if v >= (2, 23):
        parts = "kernels 0.10, alloc 0.20, bootstrap 0.50, allgathers 0.01, topo 0.10, graphs 0.05, connections 0.04"
        _say(
            job, rank, f"Init timings - ncclCommInitRank: rank {local} nranks {n} total {1 + local / 100:.2f} ({parts})"
        )


def _calls(job: Job, rng: random.Random) -> None:
    ranks = tuple(range(job.nranks))
    for call in range(job.calls):
        op, count = OPS[call % len(OPS)], (1, 1024, 65536)[call % 3]
        for rank in rng.sample(ranks, len(ranks)):
            size = f" [nranks={job.nranks}]"
            tail = f" task {call} globalrank {rank}" if job.version.endswith("RCCL") else ""
            _say(
                job,
                rank,
                f"{op}: opCount {call:x} sendbuff 0x{rng.getrandbits(47):x} recvbuff 0x{rng.getrandbits(47):x} "
                f"count {count} datatype 7 op 0 root 0 comm {pointer(rank, ranks)}{size} stream 0x55{rank:04x}{tail}",
            )
            job.calls_by_op[(op, count)] += 1
