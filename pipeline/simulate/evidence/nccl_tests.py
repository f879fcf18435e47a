"""Tables of nccl-tests, as `all_reduce_perf -b 1M -e 1G -f 4 -g 8` prints them (NVIDIA/nccl-tests, src/common.cu)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from sweepscope.pipeline.simulate.catalogue import Accelerator

OPERATIONS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0}
"""Operation to how often its bytes cross each link, over (n - 1) / n."""

_SIZES = tuple(2**power for power in range(20, 31, 2))
_LATENCY_S = {True: 25e-6, False: 60e-6}
"""Inside a node, and between nodes."""


def table(operation: str, nodes: int, card: Accelerator, rng: random.Random, *, gpus_per_node: int = 8) -> str:
    """What one call prints. The bus bandwidth rises to 82 % of the link's, from half of it at about 16 MB."""
    ranks = nodes * gpus_per_node
    return "\n".join([*_head(operation, ranks, gpus_per_node, card), *_rows(operation, nodes, ranks, card, rng)])


def _head(operation: str, ranks: int, gpus_per_node: int, card: Accelerator) -> Iterator[str]:
    yield "# nccl-tests version 2.13.10 nccl-headers=22105 nccl-library=22105"
    yield f"# Collective test starting: {operation}_perf"
    yield (
        f"# nThread 1 nGpus 1 minBytes {_SIZES[0]} maxBytes {_SIZES[-1]} step: 4(factor) warmup iters: 5 iters: 20 "
        "agg iters: 1 validation: 1 graph: 0"
    )
    yield "#"
    yield "# Using devices"
    for rank in range(ranks):
        device = rank % gpus_per_node
        place = f"gpu-{rank // gpus_per_node:03d} device {device:2d} [0x{16 * device + 9:02x}]"
        yield f"#  Rank {rank:2d} Group  0 Pid {4000 + rank:6d} on {place} {card.device_name}"
    yield "#"
    kinds = "out-of-place                       in-place"
    columns = "time   algbw   busbw #wrong"
    yield f"#{'':62}{kinds:<51}"
    yield f"#       size         count      type   redop    root     {columns}     {columns}"
    units = "(us)  (GB/s)  (GB/s)"
    yield f"#        (B)    (elements)                               {units:<27}     {units}"


def _rows(operation: str, nodes: int, ranks: int, card: Accelerator, rng: random.Random) -> Iterator[str]:
    factor = OPERATIONS[operation] * (ranks - 1) / ranks
    # Between nodes a ring of its own goes over the card of each GPU.
    network = card.network_bytes_per_s * ranks / nodes / (1 + 0.1 * nodes)
    link = card.link_bytes_per_s if nodes == 1 else network
    redop = "none" if operation == "all_gather" else "sum"
    total = []
    for size in _SIZES:
        cells = []
        for _ in range(2):
            seconds = (_LATENCY_S[nodes == 1] + factor * size / (0.82 * link)) * rng.lognormvariate(0, 0.02)
            algorithm = size / seconds / 1e9
            total.append(algorithm * factor)
            cells.append(f"{seconds * 1e6:8.1f} {algorithm:7.2f} {algorithm * factor:7.2f}      0")
        count = size // 4 if operation == "all_reduce" else size // 4 // ranks
        yield f"{size:12d}  {count:12d}     float  {redop:>6}      -1 {' '.join(cells)}"
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {sum(total) / len(total):.4f} "
    yield "#"
    yield f"# Collective test concluded: {operation}_perf"
    yield ""
