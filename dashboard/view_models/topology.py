"""Rings, trees and links of one communicator, and the kinds of transport that they use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from sweepscope.dashboard.format.symbols import Mark

ALL_LINKS = "links"
NO_HOST = "host not in this file"

TRANSPORT: dict[str, Mark] = {
    "p2p": Mark("━", "GPU to GPU (NVLink or PCIe)", "axis"),
    "shm": Mark("┅", "through host memory of the node", "warning"),
    "rdma": Mark("━", "RDMA network, straight from the GPU", "accent"),
    "staged": Mark("┅", "RDMA network, through host memory", "hang"),
    "socket": Mark("┈", "TCP sockets", "failed"),
    "sharp": Mark("━", "reduction in the network (SHARP)", "completed"),
    "unknown": Mark("┈", "transport not in this file", "hatch"),
}
"""Kinds of transport, in the order of the legend."""
DASH = {"shm": "dash", "staged": "dash", "socket": "dot", "unknown": "dot"}


def kind_of(transport: str | None) -> str:
    """The kind of a transport as NCCL names it.

    >>> [kind_of(name) for name in ("P2P/CUMEM/read", "SHM/direct/direct", "NET/IB/GDRDMA", "NET/Socket", "NET/IBext")]
    ['p2p', 'shm', 'rdma', 'socket', 'staged']
    """
    if transport is None:
        return "unknown"
    if transport.startswith("COLLNET"):
        return "sharp"
    if transport.startswith(("NET/Socket", "NET/FasTrak", "NET/FastSocket")):
        return "socket"
    if transport.startswith("NET/"):
        return "rdma" if "GDRDMA" in transport else "staged"
    return "shm" if transport.startswith("SHM") else "p2p"


def graph_options(graphs: pl.DataFrame) -> dict[str, str]:
    """Rings and trees that differ, by a key for the address: "ring 0", "tree 1"; those of equal edges are together."""
    alike: dict[tuple[str, frozenset[tuple[int, int]]], list[int]] = defaultdict(list)
    by_channel: dict[tuple[str, int], set[tuple[int, int]]] = defaultdict(set)
    for row in graphs.iter_rows(named=True):
        for channel in row["graph_channels"].split(","):
            by_channel[row["graph"], int(channel)].add((row["rank_from"], row["rank_to"]))
    for (graph, channel), edges in sorted(by_channel.items()):
        alike[graph, frozenset(edges)].append(channel)
    found = {}
    for (graph, _), channels in alike.items():
        shown = ", ".join(map(str, channels[:6])) + (" …" if len(channels) > 6 else "")
        found[f"{graph} {channels[0]}"] = f"{graph} of channel{'s' if len(channels) > 1 else ''} {shown}"
    return found


def edges_of(graphs: pl.DataFrame, option: str) -> list[tuple[int, int]]:
    """Edges of one ring or tree, as `graph_options` names it."""
    graph, _, channel = option.partition(" ")
    return [
        (row["rank_from"], row["rank_to"])
        for row in graphs.iter_rows(named=True)
        if row["graph"] == graph and channel in row["graph_channels"].split(",")
    ]


def ring_order(nranks: int, graphs: pl.DataFrame) -> list[int]:
    """Ranks along the first ring from rank 0; those not in it follow by number.

    Two rings, one the other way: the first channel's is taken.
    """
    following = dict(edges_of(graphs, "ring 0")) if graphs.height else {}
    order, seen, rank = [], set(), 0
    while rank is not None and rank not in seen and rank < nranks:
        order.append(rank)
        seen.add(rank)
        rank = following.get(rank)  # type: ignore[assignment]  # None ends the walk
    return order + [rank for rank in range(nranks) if rank not in seen]


def crossings(order: Sequence[int], host_of: Mapping[int, str]) -> int:
    """How often a closed ring goes from one host to another.

    >>> crossings([0, 1, 2, 3], {0: "a", 1: "a", 2: "b", 3: "b"})
    2
    """
    hosts = [host_of.get(rank) for rank in order]
    return sum(a != b for a, b in zip(hosts, [*hosts[1:], *hosts[:1]], strict=True))
