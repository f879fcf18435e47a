"""NCCL's output of a job while the communicator of all ranks is made, as `srun --error=nccl.%j` collects it.

Sources: NCCL 2.27 src/init.cc (version, Init START, COMPLETE and timings), src/graph/connect.cc (rings), src/transport
(`via`), src/transport/net_ib.cc and net_socket.cc (interfaces). Rings are connected at the first collective.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from sweepscope.pipeline.simulate.evidence.hosts import hosts
from sweepscope.pipeline.simulate.renderers.protocol import cosmetics
from sweepscope.pipeline.simulate.truth import SimulatedRun

CHANNELS = 8
"""Rings. NCCL takes more on most machines; fewer keep the files small."""
_CHUNK = 524288


def debug_output(run: SimulatedRun, version: str, *, is_on_sockets: bool) -> str:
    """The lines of all ranks, which print at the same time: they take turns.

    Args:
        run: of one GPU per rank, ranks filling node after node.
        version: of NCCL, with CUDA's: "2.21.5+cuda12.4".
        is_on_sockets: no InfiniBand was found, so that nodes talk over TCP.
    """
    rng = cosmetics(run, "nccl")
    comm_id, base = rng.getrandbits(63), rng.randrange(20_000, 900_000)
    names = hosts(run)
    waiting, late = [], rng.randrange(run.num_gpus)
    for rank in range(run.num_gpus):
        host, device = names[rank // run.gpus_per_node], rank % run.gpus_per_node
        prefix = f"{host}:{base + device}:{base + device} [{device}] NCCL INFO "
        texts = _lines(run, rank, comm_id, rng, is_late=rank == late, is_on_sockets=is_on_sockets)
        waiting.append([prefix + text for text in texts][::-1])
    found = [f"NCCL version {version}"]
    while waiting:
        turn = rng.randrange(len(waiting))
        found.append(waiting[turn].pop())
        waiting = [texts for texts in waiting if texts]
    return "\n".join([*found, ""])


def _lines(
    run: SimulatedRun, rank: int, comm_id: int, rng: random.Random, *, is_late: bool, is_on_sockets: bool
) -> Iterator[str]:
    size, node, device = run.num_gpus, run.gpus_per_node, rank % run.gpus_per_node
    card = f"cudaDev {device} nvmlDev {device} busId {device * 16 + 9:x}000"
    comm = f"comm 0x{rng.getrandbits(44):x} rank {rank} nranks {size} {card}"
    yield "Bootstrap : Using eth0:10.0.0.1<0>"
    yield "cudaDriverVersion 12080"
    if is_on_sockets:
        yield "NET/IB : No device found."
        yield "NET/Socket : Using [0]eth0:10.0.0.1<0>"
    else:
        cards = " ".join(f"[{number}]mlx5_{number}:1/IB" for number in range(node))
        yield f"NET/IB : Using {cards} [RO]; OOB eth0:10.0.0.1<0>"
    yield f"Using network {'Socket' if is_on_sockets else 'IB'}"
    yield f"ncclCommInitRank {comm} commId 0x{comm_id:x} - Init START"
    waited = 0.04 if is_late else rng.uniform(1.1, 1.3)
    own = {"kernels": rng.uniform(0.14, 0.2), "alloc": rng.uniform(0.4, 0.6), "bootstrap": waited, "allgathers": 0.02}
    parts = own | {"topo": rng.uniform(0.05, 0.08), "graphs": 0.01, "connections": 0.03, "rest": 0.01}
    shown = ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
    yield (
        f"{CHANNELS} coll channels, {CHANNELS} collnet channels, 0 nvls channels, {CHANNELS} p2p channels, "
        "2 p2p channels per peer"
    )
    yield f"ncclCommInitRank {comm} commId 0x{comm_id:x} - Init COMPLETE"
    total = sum(parts.values())
    yield f"Init timings - ncclCommInitRank: rank {rank} nranks {size} total {total:.2f} ({shown})"
    if rank == 0:
        ring = " ".join(f"{number:3d}" for number in range(size))
        for channel in range(CHANNELS):
            yield f"Channel {channel:02d}/{CHANNELS:02d} : {ring}"
    following, before = (rank + 1) % size, (rank - 1) % size
    yield f"P2P Chunksize set to {_CHUNK}"
    for channel in range(CHANNELS):
        net = f"NET/Socket/{channel % node}" if is_on_sockets else f"NET/IB/{channel % node}/GDRDMA"
        if before // node != rank // node:
            yield f"Channel {channel:02d}/0 : {before}[{before % node}] -> {rank}[{device}] [receive] via {net}"
        target = f"{rank}[{device}] -> {following}[{following % node}]"
        far = following // node != rank // node
        yield f"Channel {channel:02d}/0 : {target} {f'[send] via {net}' if far else 'via P2P/CUMEM/read'}"
    yield "Connected all rings"
    yield "Connected all trees"
