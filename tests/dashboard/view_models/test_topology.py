"""The picture of a communicator: where nodes stand, what connects them, and what is left to words."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.charts import topology as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.text import topology as texts
from sweepscope.dashboard.view_models import topology, topology_picture
from sweepscope.schemas.tables.nccl import NCCL_GRAPHS, NCCL_LINKS, NCCL_RANKS
from tests.nccl_rows import graph_row, link_row, rank_row


def ranks(nodes: int, per_node: int) -> pl.DataFrame:
    rows = [
        rank_row(rank=rank, host=f"n{rank // per_node}", cuda_dev=rank % per_node) for rank in range(nodes * per_node)
    ]
    return NCCL_RANKS.conform(pl.DataFrame(rows))


def links(*pairs: tuple[int, int, str]) -> pl.DataFrame:
    rows = [link_row(rank_from=a, rank_to=b, transport=name, link_channels=2) for a, b, name in pairs]
    return NCCL_LINKS.conform(pl.DataFrame(rows, infer_schema_length=None))


def graphs(*edges: tuple[str, int, int, str]) -> pl.DataFrame:
    rows = [graph_row(graph=graph, rank_from=a, rank_to=b, graph_channels=channels) for graph, a, b, channels in edges]
    return NCCL_GRAPHS.conform(pl.DataFrame(rows))


RING = graphs(
    ("ring", 0, 2, "0,2"),
    ("ring", 2, 1, "0,2"),
    ("ring", 1, 3, "0,2"),
    ("ring", 3, 0, "0,2"),
    ("ring", 0, 1, "1"),
    ("ring", 1, 0, "1"),
    ("tree", 1, 0, "0"),
)
LINKS = links((0, 2, "NET/IB/GDRDMA"), (0, 1, "P2P/CUMEM"), (1, 3, "NET/Socket"))


def test_rings_and_trees_that_are_equal_are_one_option() -> None:
    assert topology.graph_options(RING) == {
        "ring 0": "ring of channels 0, 2",
        "ring 1": "ring of channel 1",
        "tree 0": "tree of channel 0",
    }
    assert topology.edges_of(RING, "ring 1") == [(0, 1), (1, 0)]


def test_ranks_stand_in_the_order_of_the_ring() -> None:
    assert topology.ring_order(4, RING) == [0, 2, 1, 3]
    assert topology.ring_order(3, RING.head(0)) == [0, 1, 2]


def test_links_keep_their_transport() -> None:
    found = topology_picture.picture(4, ranks(2, 2), LINKS, RING, topology.ALL_LINKS)
    assert [host for host, _, _ in found.hosts] == ["n0", "n1"]
    assert sorted((edge.kind, edge.count) for edge in found.edges) == [("p2p", 2), ("rdma", 2), ("socket", 2)]
    assert topology_picture.counted(found) == [("p2p", 1), ("rdma", 1), ("socket", 1)]
    assert "TCP sockets: 1" in texts.alt(found, {"nranks": 4})


def test_a_ring_takes_the_transport_of_its_links_either_way() -> None:
    found = topology_picture.picture(4, ranks(2, 2), LINKS, RING, "ring 0")
    kind_of = {edge.hover: edge.kind for edge in found.edges}
    assert kind_of["0 → 2: RDMA network, straight from the GPU"] == "rdma"
    assert kind_of["3 → 0: transport not in this file"] == "unknown"
    figure = charts.draw_topology(found, LIGHT)
    assert sum(note.showarrow for note in figure.layout.annotations) == 4


def test_a_large_communicator_is_drawn_by_host() -> None:
    pairs = [(rank, rank + 1, "NET/IB/GDRDMA" if rank % 8 == 7 else "P2P/IPC") for rank in range(2047)]
    found = topology_picture.picture(2048, ranks(256, 8), links(*pairs), RING.head(0), topology.ALL_LINKS)
    assert (len(found.nodes), len(found.edges), found.is_by_host) == (256, 255, True)
    assert dict(found.inside) == {"p2p": 2 * 7 * 256}
    figure = charts.draw_topology(found, LIGHT)
    assert [trace.mode for trace in figure.data] == ["lines", "markers", "markers"]
    (first,) = texts.notes(found, row(2048), ranks(256, 8), range(2048), RING.head(0))
    assert first == "Drawn by host. Inside the hosts: GPU to GPU (NVLink or PCIe): 3,584."


def row(nranks: int, **changes: Any) -> dict[str, Any]:
    return {"nranks": nranks, "is_membership_exact": True, **changes}


def test_words_say_how_the_ring_crosses_and_what_is_missing() -> None:
    found = topology_picture.picture(4, ranks(2, 2), LINKS, RING, topology.ALL_LINKS)
    said = texts.notes(found, row(4), ranks(2, 2), topology.ring_order(4, RING), RING)
    assert said == ["Ring 0 crosses from host to host 4 times for 2 hosts: 2 would do."]
    partial = texts.notes(found, row(4, is_membership_exact=False), ranks(1, 2), [0, 2, 1, 3], RING)
    assert partial[0].startswith("2 ranks of 4 printed no initialisation")
    assert "line order" in partial[1]


@pytest.mark.parametrize("hosts", [1, 3, 24, 25, 300])
def test_no_two_hosts_stand_at_one_place(hosts: int) -> None:
    found = topology_picture.picture(hosts * 65, ranks(hosts, 65), LINKS, RING, topology.ALL_LINKS)
    places = {(round(x, 6), round(y, 6)) for x, y in (node.point for node in found.nodes)}
    assert len(places) == hosts
