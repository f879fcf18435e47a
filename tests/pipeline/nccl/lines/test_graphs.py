"""Rings and trees of channels, as NCCL's versions print them."""

from __future__ import annotations

import pytest

from tests.pipeline.nccl.reading import row_of, tables_of


def log(*texts: str, rank: int = 0, nranks: int = 4, start: bool = True) -> str:
    """The lines of one rank's thread, between the start and the end of its initialisation."""
    head = f"comm 0xa{rank} rank {rank} nranks {nranks} cudaDev {rank} nvmlDev {rank} busId 1b000 commId 0x7"
    begin = [f"{head} - Init START"] if start else []
    said = [*begin, *texts, f"{head} - Init COMPLETE"]
    return "".join(f"n1:{100 + rank}:{200 + rank} [{rank}] NCCL INFO {text}\n" for text in said)


def edges(text: str, graph: str) -> list[tuple[int, int, str]]:
    rows = tables_of(text)["nccl_graphs"]
    found = rows.filter(rows["graph"] == graph).sort("rank_from", "rank_to")
    return list(found.select("rank_from", "rank_to", "graph_channels").iter_rows())


@pytest.mark.parametrize("start", [True, False])
def test_a_ring_is_closed_and_channels_of_one_order_are_together(start: bool) -> None:
    text = log(
        "Channel 00/03 :    0   2   3   1", "Channel 01/03 : 0 1 2 3", "Channel 02/03 :    0   2   3   1", start=start
    )
    assert edges(text, "ring") == [
        (0, 1, "1"),
        (0, 2, "0,2"),
        (1, 0, "0,2"),
        (1, 2, "1"),
        (2, 3, "0,1,2"),
        (3, 0, "1"),
        (3, 1, "0,2"),
    ]
    (row,) = tables_of(text)["nccl_graphs"].filter(rank_from=2, rank_to=3).to_dicts()
    assert (row["num_graph_channels"], row["comm_index"], row["line_no"]) == (3, 1, 2 if start else 1)


def test_a_ring_that_was_cut_stays_open_without_its_last_number() -> None:
    order = " ".join(str(rank) for rank in range(400))
    cut = f"Channel 00/02 : {order}"[:868]  # in the middle of 240
    assert cut.endswith(" 239 24")
    assert edges(log(cut, nranks=400), "ring") == [(rank, rank + 1, "0") for rank in range(239)]


def test_the_graph_subsystem_prints_each_ranks_place() -> None:
    text = log("Ring 00 : 3 -> 0 -> 1", "Ring 01 : 1 -> 0 -> 3") + log("Ring 00 : 0 -> 1 -> 2", rank=1)
    assert edges(text, "ring") == [(0, 1, "0"), (0, 3, "1"), (1, 2, "0")]


@pytest.mark.parametrize(
    "text",
    [
        "Trees [0] 1/2/-1->0->-1 [1] -1/-1/-1->0->3 [2] 1/-1/-1->0->3",
        "Trees [0] 1/2/-1->0->-1|-1->0->1/2/-1 [1] -1/-1/-1->0->3|3->0->-1/-1/-1 [2] 1/-1/-1->0->3|3->0->1/-1/-1",
        "Trees [0] -1->0->1/2/-1 [1] 3->0->-1/-1/-1 [2] 3->0->1/-1/-1",
        "Trees [0] -1->0->1/2/-1|-1->0->1/2/-1 [1] 3->0->-1/-1/-1|3->0->-1/-1/-1 [2] 3->0->1/-1/-1|3->0->1/-1/-1",
    ],
    ids=["2.8 and later", "2.5 to 2.7", "2.4, one tree", "2.4, two trees"],
)
def test_trees_of_every_version(text: str) -> None:
    assert edges(log(text), "tree") == [(0, 3, "1,2")]


def test_of_a_text_that_was_cut_the_last_branch_is_left_out() -> None:
    glued = "n1:100:200 [0] NCCL INFO Trees [0] -1/-1/-1->0->3 [1] -1/-1/-1->0->1n1:101:201 [1] NCCL INFO CC Off\n"
    text = log("Using network IB").replace("n1:100:200 [0] NCCL INFO Using network IB\n", glued)
    assert edges(text, "tree") == [(0, 3, "0")]


def test_each_communicator_of_a_thread_has_its_own() -> None:
    first = log("Trees [0] -1/-1/-1->1->0", rank=1, nranks=2)
    second = log("Trees [0] -1/-1/-1->1->3", rank=1).replace("commId 0x7", "commId 0x8").replace("0xa1", "0xb1")
    rows = tables_of(first + second)["nccl_graphs"].sort("comm_index")
    assert list(rows.select("comm_index", "rank_to").iter_rows()) == [(1, 0), (2, 3)]


def test_ranks_beyond_the_communicator_are_damage() -> None:
    assert edges(log("Trees [0] -1/-1/-1->0->9"), "tree") == []


def test_an_edge_that_two_blocks_tell_is_one_row_with_the_channels_of_both() -> None:
    text = log("Channel 00/02 :    0   1   2   3", "Channel 01/02 :    0   1   2   3")
    at = text.index("Channel 01")
    rows = tables_of(text, block_bytes=at)["nccl_graphs"].sort("rank_from")
    assert rows.select("rank_from", "rank_to", "graph_channels", "line_no").rows() == [
        (0, 1, "0,1", 2),
        (1, 2, "0,1", 2),
        (2, 3, "0,1", 2),
        (3, 0, "0,1", 2),
    ]


@pytest.mark.parametrize("repeats", [1, 30])  # one by one, and as columns
def test_more_channels_than_a_number_has_bits(repeats: int) -> None:
    rings = [f"Channel {channel:02}/130 :    0   1   2   3" for channel in range(130)]
    whole = ",".join(str(channel) for channel in range(130))
    rows = tables_of(log(*rings * repeats))["nccl_graphs"].sort("rank_from")
    assert rows.select("rank_from", "graph_channels", "num_graph_channels").rows() == [
        (rank, whole, 130) for rank in range(4)
    ]


def test_a_ring_of_one_rank_has_no_edge() -> None:
    assert edges(log(*(f"Channel {channel:02}/64 :    0" for channel in range(64)), nranks=1), "ring") == []


def test_of_an_excerpt_rings_and_channels_tell_the_size() -> None:
    prefix = "algo-1:465:501 [3] NCCL INFO "
    whole = f"{prefix}Channel 00/02 :    0   1   2   3   7   6   5   4\n"
    row = row_of(tables_of(whole)["nccl_files"])
    assert (row["nranks_max"], row["num_channels"]) == (8, 2)
    # A ring that lacks ranks, or is shorter than another one says.
    assert row_of(tables_of(f"{prefix}Channel 00/02 :    0   1   6   7\n")["nccl_files"]).get("nranks_max") is None
    two = f"{prefix}Channel 00/02 :    0   1\n{prefix}Channel 00/02 :    0   4   9\n"
    assert row_of(tables_of(two)["nccl_files"]).get("nranks_max") is None
    counted = f"{prefix}6 coll channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer\n"
    assert row_of(tables_of(counted)["nccl_files"])["num_channels"] == 6
