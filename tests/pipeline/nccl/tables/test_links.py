"""Connections: their transports and devices."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.nccl.lines.transports import transport_of
from tests.pipeline.nccl.reading import tables_of


def via(text: str, rank: int = 0) -> str:
    return f"n1:{100 + rank}:{200 + rank} [{rank}] NCCL INFO Channel {text}\n"


@pytest.mark.parametrize("repeats", [1, 40])  # one by one, and as columns
def test_devices_of_a_pair_are_named_together_whosever_it_is(repeats: int) -> None:
    lines = [
        via("00/0 : 0[0] -> 1[0] [send] via NET/IB/3"),
        via("01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA"),
        via("02/0 : 0[0] -> 1[0] [send] via NET/IB/10"),
        via("03/0 : 0[0] -> 1[0] [send] via NET/IB/3"),
        via("00/0 : 0[0] -> 2[0] via P2P/IPC"),
    ]
    rows = tables_of("".join(lines) * repeats)["nccl_links"].sort("rank_to", "transport")
    assert rows.select("comm_index", "rank_to", "transport", "net_devices", "link_channels").rows() == [
        (None, 1, "NET/IB", "10, 3", 3 * repeats),
        (None, 1, "NET/IB/GDRDMA", "1", repeats),
        (None, 2, "P2P/IPC", None, repeats),
    ]


@pytest.mark.parametrize("text", ["SHM/direct/direct", "SHM/CE/direct", "SHM/direct", "SHM"])  # 2.30 says the third
def test_host_memory_in_every_spelling(text: str) -> None:
    assert transport_of(text) == (text, None)


def test_a_cut_transport_is_none() -> None:
    assert [transport_of(text) for text in ("SHM/dir", "SHM/direct/", "SHM/direct/dire", "P2P/CUM")] == [None] * 4
