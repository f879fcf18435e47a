"""The picture of one communicator: hosts, ranks, and what connects them.

Small communicators are drawn by rank, on a circle per host in the order of the ring; larger ones by host, on a circle
or, when there are many, in rows that follow the ring, so that edges that leave it are visible.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.topology import ALL_LINKS, NO_HOST, TRANSPORT, edges_of, kind_of, ring_order

Point = tuple[float, float]

MAX_RANKS, MAX_RANKS_OF_A_GRAPH = 32, 64
"""Ranks up to which each one is drawn: with all links, and with one ring or tree."""
_ON_A_CIRCLE = 24


@dataclass(frozen=True)
class Node:
    """A rank, or a host of a large communicator."""

    name: str
    point: Point
    hover: str


@dataclass(frozen=True)
class Edge:
    """What connects two nodes, in one kind of transport; `count` lines or channels."""

    start: Point
    end: Point
    kind: str
    count: int
    hover: str


@dataclass(frozen=True)
class Picture:
    """Hosts as discs (name, centre, radius), nodes and edges; `is_by_host` for large communicators."""

    hosts: tuple[tuple[str, Point, float], ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    is_by_host: bool
    is_directed: bool
    inside: Mapping[str, int]  # links within hosts by kind, where hosts alone are drawn


def picture(nranks: int, ranks: pl.DataFrame, links: pl.DataFrame, graphs: pl.DataFrame, show: str) -> Picture:
    """The picture of a communicator of `nranks`.

    Args:
        nranks: its size.
        ranks: `rank`, `host`, `cuda_dev`, `bus_id`.
        links: rows of `nccl_links`.
        graphs: rows of `nccl_graphs`.
        show: ALL_LINKS, or a key of `graph_options`.
    """
    host_of = {row["rank"]: row["host"] or NO_HOST for row in ranks.iter_rows(named=True)}
    order = ring_order(nranks, graphs)
    hosts: dict[str, list[int]] = defaultdict(list)
    for rank in order:
        hosts[host_of.get(rank, NO_HOST)].append(rank)
    kinds = _kinds(links)
    if show == ALL_LINKS:
        pairs = [(pair, kind, count) for pair, found in kinds.items() for kind, count in found.items()]
    else:
        main_kinds = {pair: _main(found) for pair, found in kinds.items()}
        drawn = edges_of(graphs, show)
        pairs = [((a, b), main_kinds.get((a, b)) or main_kinds.get((b, a)) or "unknown", 1) for a, b in drawn]
    pairs = [(pair, kind, count) for pair, kind, count in pairs if max(pair) < nranks]
    if nranks > (MAX_RANKS if show == ALL_LINKS else MAX_RANKS_OF_A_GRAPH):
        return _by_host(hosts, host_of, pairs)
    return _by_rank(hosts, host_of, ranks, pairs, is_directed=show != ALL_LINKS)


def _kinds(links: pl.DataFrame) -> dict[tuple[int, int], Counter[str]]:
    """Lines per pair of ranks and kind of transport. A CollNet line names one rank, and is no link between two."""
    found: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for row in links.iter_rows(named=True):
        if row["rank_from"] != row["rank_to"]:
            found[row["rank_from"], row["rank_to"]][kind_of(row["transport"])] += row["link_channels"]
    return found


def _main(found: Counter[str]) -> str:
    return found.most_common(1)[0][0]


def _by_rank(
    hosts: Mapping[str, Sequence[int]],
    host_of: Mapping[int, str],
    ranks: pl.DataFrame,
    pairs: Iterable[tuple[tuple[int, int], str, int]],
    *,
    is_directed: bool,
) -> Picture:
    columns = _columns(len(hosts))
    radius = 1.0
    points: dict[int, Point] = {}
    discs = []
    for host_no, (host, members) in enumerate(hosts.items()):
        x, y = _snake(host_no, columns, step=2.7)
        discs.append((host, (x, y), radius))
        turn = 2 * math.pi / max(len(members), 1)
        inner = 0.0 if len(members) == 1 else 0.78 * radius
        for index, rank in enumerate(members):
            # Each circle is turned a little more, so that no link runs through a rank that it does not mean.
            angle = -math.pi / 2 + 0.31 + 0.23 * host_no + index * turn
            points[rank] = (x + inner * math.cos(angle), y + inner * math.sin(angle))
    by_rank = {row["rank"]: row for row in ranks.iter_rows(named=True)}
    nodes = tuple(
        Node(str(rank), point, _rank_hover(rank, host_of.get(rank, NO_HOST), by_rank.get(rank)))
        for rank, point in points.items()
    )
    edges = tuple(
        Edge(points[a], points[b], kind, count, f"{a} → {b}: {TRANSPORT[kind].word}") for (a, b), kind, count in pairs
    )
    return Picture(tuple(discs), nodes, edges, is_by_host=False, is_directed=is_directed, inside={})


def _by_host(
    hosts: Mapping[str, Sequence[int]], host_of: Mapping[int, str], pairs: Iterable[tuple[tuple[int, int], str, int]]
) -> Picture:
    points = _host_points(list(hosts))
    counted: Counter[tuple[str, str, str]] = Counter()
    inside: dict[str, Counter[str]] = defaultdict(Counter)
    for (a, b), kind, count in pairs:
        first, second = sorted((host_of.get(a, NO_HOST), host_of.get(b, NO_HOST)))
        if first == second:
            inside[first][kind] += count
        else:
            counted[first, second, kind] += count
    nodes = tuple(
        Node(host, points[host], f"{host}: {len(members)} ranks; {_inside(inside[host])}")
        for host, members in hosts.items()
    )
    edges = tuple(
        Edge(points[a], points[b], kind, count, f"{a} – {b}: {count} × {TRANSPORT[kind].word}")
        for (a, b, kind), count in sorted(counted.items())
    )
    within = sum(inside.values(), Counter[str]())
    return Picture((), nodes, edges, is_by_host=True, is_directed=False, inside=within)


def _host_points(hosts: Sequence[str]) -> dict[str, Point]:
    """A circle, in which no link runs through a third host; rows to and fro for more than fit on it."""
    if len(hosts) > _ON_A_CIRCLE:
        columns = _columns(len(hosts))
        return {host: _snake(index, columns, step=1.0) for index, host in enumerate(hosts)}
    turn, radius = 2 * math.pi / max(len(hosts), 1), 0.9 + 0.11 * len(hosts)
    points = {}
    for index, host in enumerate(hosts):
        angle = -math.pi / 2 + index * turn
        points[host] = (1.5 * radius * math.cos(angle), radius * math.sin(angle))
    return points


def _inside(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} × {TRANSPORT[kind].word}" for kind, count in kinds.most_common()) or "no link inside"


def _columns(hosts: int) -> int:
    return hosts if hosts <= 4 else min(math.ceil(math.sqrt(hosts * 2.2)), hosts)


def _snake(index: int, columns: int, *, step: float) -> Point:
    """Point of a host in rows that run to and fro, so that the next one is always beside.

    >>> [_snake(index, 2, step=1.0) for index in range(4)]
    [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    """
    row, column = divmod(index, columns)
    return ((columns - 1 - column if row % 2 else column) * step, row * step)


def _rank_hover(rank: int, host: str, row: Row | None) -> str:
    parts = [f"Rank {rank}", host]
    if row is not None and row["cuda_dev"] is not None:
        parts.append(f"GPU {row['cuda_dev']}")
    if row is not None and row["bus_id"]:
        parts.append(f"bus {row['bus_id']}")
    return " · ".join(parts)


def counted(found: Picture) -> list[tuple[str, int]]:
    """Kinds of transport on the picture with the number of edges, in the order of the legend."""
    edges = Counter(edge.kind for edge in found.edges)
    return [(kind, edges[kind]) for kind in TRANSPORT if edges[kind]]
