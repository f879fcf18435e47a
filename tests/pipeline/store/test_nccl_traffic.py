"""Bytes over links, derived from COLL lines and the printed rings."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sweepscope.schemas.registry import VIEWS
from tests.dashboard.store_rows import Row, write_real_store
from tests.nccl_rows import collective_row, graph_row, rank_row

GIB = 2**30


def traffic(tmp_path: Path, *collectives: Row) -> list[tuple[int, int, str, str, float]]:
    """Of a ring 0-1-2-3 in channel 0 and its reverse in channel 1, two ranks on each of two hosts."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    ring = [graph_row(rank_from=a, rank_to=b) for a, b in edges]
    back = [graph_row(rank_from=b, rank_to=a, graph_channels="1") for a, b in edges]
    ranks = [rank_row(rank=rank, host=f"n{rank // 2}") for rank in range(4)]
    path = write_real_store(
        tmp_path / "s.duckdb", nccl_graphs=[*ring, *back], nccl_ranks=ranks, nccl_collectives=list(collectives)
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.sql("SELECT * FROM nccl_traffic ORDER BY rank_from, rank_to, traffic_basis").pl()
    assert tuple(rows.columns) == VIEWS["nccl_traffic"].column_names
    return list(rows.select("rank_from", "rank_to", "traffic_basis", "host_to", "link_bytes").iter_rows())


@pytest.mark.parametrize(
    ("op", "per_edge"),
    [("AllReduce", 2 * 3 / 4), ("AllGather", 3 / 4), ("ReduceScatter", 3 / 4), ("Broadcast", 1.0)],
)
def test_each_operation_moves_what_a_ring_moves(tmp_path: Path, op: str, per_edge: float) -> None:
    rows = traffic(tmp_path, collective_row(op=op, nranks=4))
    assert len(rows) == 8
    # Two channels share the buffer.
    assert {bytes_ for *_, bytes_ in rows} == {10 * GIB * per_edge / 2}
    assert rows[0][:4] == (0, 1, "ring", "n0")


def test_a_send_goes_to_its_peer(tmp_path: Path) -> None:
    rows = traffic(
        tmp_path, collective_row(op="Send", nranks=4, rank=1, root=3), collective_row(op="Recv", rank=3, root=1)
    )
    assert rows == [(1, 3, "send", "n1", 10.0 * GIB)]


def test_a_call_of_an_unknown_communicator_is_left_out(tmp_path: Path) -> None:
    assert traffic(tmp_path, collective_row(comm_index=None, nranks=4), collective_row(op="AlltoAll", nranks=4)) == []
