"""One job, as each version of NCCL and RCCL prints it, gives the same answers."""

from __future__ import annotations

import polars as pl
import pytest

from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.reading import row_of, tables_of, take_all_for_irregular

versions = pytest.mark.parametrize("version", VERSIONS)
TIMED = ("2.24.3", "2.29.2", "2.30.3")


@pytest.mark.slow
@versions
def test_the_file_is_summed_up(version: str) -> None:
    job = render(Job(version, nodes=2, gpus=4, calls=24, warns=3))
    row = row_of(tables_of(job.text())["nccl_files"])
    assert row["nccl_flavour"] == ("RCCL" if version.endswith("RCCL") else "NCCL")
    assert str(row["nccl_version"]).startswith(version.split("-", 1)[0])
    assert (row["nranks_max"], row["num_nodes"], row["num_communicators"], row["num_channels"]) == (8, 2, 1, 4)
    assert row["transports"] == f"NET/IB/GDRDMA, {'P2P/CUMEM/read' if job.number >= (2, 18) else 'P2P/IPC'}"
    assert (row["networks"], row["num_warns"], row["has_coll"], row["coll_calls"]) == ("IB", 3, True, 24 * 8)
    assert str(row["first_warn"]).startswith("NET/IB : Got completion from peer 10.0.0.0<4000> with status=12")
    assert (row["nccl_lines_other"], row["nccl_lines_damaged"]) == (8, 0)  # "Connected all rings"


@pytest.mark.slow
@versions
def test_ranks_belong_to_their_communicators(version: str) -> None:
    job = render(Job(version, nodes=3, gpus=2, per_node=True))
    tables = tables_of(job.text())
    comms = tables["nccl_communicators"].sort("comm_index")
    assert comms["nranks"].to_list() == [6, 2, 2, 2]
    assert comms["ranks_seen"].to_list() == [6, 2, 2, 2]
    has_identity = job.number >= (2, 16)
    assert comms["is_membership_exact"].to_list() == [True, *[has_identity] * 3]
    ranks = tables["nccl_ranks"]
    assert ranks.height == 12
    if has_identity:  # the two ranks of each small communicator share a host
        assert ranks.filter(nranks=2).group_by("comm_index").n_unique()["host"].to_list() == [1, 1, 1]
    assert set(ranks["init_state"]) == {"complete"}
    assert comms["ring_channels"].to_list() == [4] * 4
    assert comms["ring_order"][0] == "0 1 2 3 4 5"


@pytest.mark.slow
@versions
def test_links_belong_to_their_communicators(version: str) -> None:
    tables = tables_of(render(Job(version, nodes=2, gpus=2, per_node=True)).text())
    links = tables["nccl_links"]
    assert links["comm_index"].null_count() == 0
    whole = links.filter(comm_index=1).sort("rank_from")
    assert whole.select("rank_from", "rank_to", "link_channels").rows() == [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
    assert [text.startswith("NET/IB") for text in whole["transport"]] == [False, True, False, True]
    assert whole["net_devices"].to_list() == [None, "0, 1", None, "0, 1"]
    assert not links.filter(pl.col("comm_index") > 1, pl.col("transport").str.starts_with("NET")).height


@pytest.mark.parametrize("version", TIMED)
def test_the_slowest_rank_is_the_communicators_time(version: str) -> None:
    comm = row_of(tables_of(render(Job(version, nodes=1, gpus=4)).text())["nccl_communicators"])
    assert (comm["init_time_s"], comm["init_slowest_rank"], comm["init_bootstrap_s"]) == (1.03, 3, 0.5)


@pytest.mark.slow
@versions
def test_calls_are_added_up_per_size(version: str) -> None:
    job = render(Job(version, nodes=1, gpus=4, calls=60))
    rows = tables_of(job.text())["nccl_collectives"]
    calls_of = {(op, count): calls for op, count, calls in rows.select("op", "element_count", "calls").iter_rows()}
    assert calls_of == dict(job.calls_by_op)
    assert rows["comm_index"].unique().to_list() == [1]
    assert set(rows["ranks_calling"]) == {4}
    reduced = row_of(rows.filter(op="AllReduce", element_count=1024))
    assert (reduced["message_bytes"], reduced["reduction"], reduced["datatype"]) == (4096, "sum", "float32")
    gathered = row_of(rows.filter(op="AllGather", element_count=1024))
    assert gathered["message_bytes"] == 4 * 4096
    assert gathered["total_bytes"] == 4 * 4096 * gathered["collectives"]


@pytest.mark.parametrize(
    ("text", "version", "flavour"),
    [
        ("NCCL version 2.7.8+cuda10.2NCCL version 2.7.8+cuda10.2\n", "2.7.8+cuda10.2", "NCCL"),
        (
            "[rank0]:NCCL version 2.29.7+cuda13.1\nDistBackendError: NCCL error, NCCL version 2.29.7\n",
            "2.29.7+cuda13.1",
            "NCCL",
        ),
        ("NCCL version 2.12.6azure3+cuda11.4\n", "2.12.6azure3+cuda11.4", "NCCL"),
        ("n:1:1 [0] NCCL INFO RCCL version : 2.22.3-HEAD:271856d\n", "2.22.3-HEAD:271856d", "RCCL"),
        ("RCCL version 2.18.3+hip6.0 HEAD:2f6d59e+\nn:1:1 [0] NCCL INFO Using network IB\n", "2.18.3+hip6.0", "RCCL"),
        ("# rccl-tests version 2.17.9 rccl-headers=22803 rccl-library=22803\n", "2.28.3", "RCCL"),
        (
            "# rccl-tests version 2.17.9 rccl-library=22803\nRCCL version : 2.28.3-gfx1151:a1\n",
            "2.28.3-gfx1151:a1",
            "RCCL",
        ),
        ("NCCL version 2.18.3+cuda12.2\nNCCL version 2.20.5+cuda12.4\n", "2.18.3+cuda12.2, 2.20.5+cuda12.4", "NCCL"),
        ("n:1:1 [0] NCCL INFO RCCL_MSCCL_ENABLE set by environment to 0.\n", None, "RCCL"),
    ],
)
def test_the_version_is_named_once(text: str, version: str | None, flavour: str) -> None:
    row = row_of(tables_of(text)["nccl_files"])
    assert (row.get("nccl_version"), row["nccl_flavour"]) == (version, flavour)


LINE = "n1:100:{tid} [{dev}] NCCL INFO {text}\n"


def lines(*texts: str, tid: int = 200, dev: int = 0) -> str:
    return "".join(LINE.format(tid=tid, dev=dev, text=text) for text in texts)


READY = "comm 0xa0 rank 0 nranks 4 cudaDev 0 - Init COMPLETE"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "ends", "transport"),
    [
        # 2.3 and 2.4: transport/p2p.cc, shm.cc, net.cc
        ("Ring 00 : 0[0] -> 1[1] via P2P/direct pointer", (0, 1, None), "P2P/direct pointer"),
        ("Ring 01 : 0[0] -> 1[1] via direct shared memory", (0, 1, None), "SHM"),
        ("Ring 00 : 3 -> 0 [receive] via NET/IB/0/GDRDMA", (3, 0, "receive"), "NET/IB/GDRDMA"),
        ("Ring 00 : 0 -> 1 [send] via NET/Socket/0", (0, 1, "send"), "NET/Socket"),
        # 2.6 to 2.9: transport/coll_net.cc
        ("Coll 00 : 0 [send] via COLLNET/SHARP/0/GDRDMA", (0, 0, "send"), "COLLNET/SHARP/GDRDMA"),
        # 2.7 to 2.17: bus ids in hex
        ("Channel 01 : 0[1b000] -> 1[3d000] via P2P/indirect/2[af000]", (0, 1, None), "P2P/indirect"),
        ("Channel 01 : 3[d8000] -> 0[1b000] [receive] via NET/IB/1", (3, 0, "receive"), "NET/IB"),
        ("CollNet 00/0 : 0 [receive] via COLLNET/SHARP/0/GDRDMA", (0, 0, "receive"), "COLLNET/SHARP/GDRDMA"),
        # 2.18 on: device numbers; a proxy of another rank in brackets
        ("Channel 07/1 : 0[0] -> 3[3] [send] via NET/IB/2(1)/GDRDMA(PCI)", (0, 3, "send"), "NET/IB/GDRDMA(PCI)"),
        ("Channel 07/1 : 0[0] -> 1[1] via P2P/MNNVL/read/CE", (0, 1, None), "P2P/MNNVL/read/CE"),
        # RCCL: transport/p2p.cc
        (
            "Channel 00 : 0[c1000] -> 1[c6000] via P2P/direct pointer comm 0xa0 nRanks 04",
            (0, 1, None),
            "P2P/direct pointer",
        ),
    ],
)
@pytest.mark.parametrize("is_regular", [True, False])
def test_every_link_line(
    text: str, ends: tuple[int, int, str | None], transport: str, is_regular: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_regular:
        take_all_for_irregular(monkeypatch)
    row = row_of(tables_of(lines(text, READY))["nccl_links"])
    assert (row["rank_from"], row["rank_to"], row.get("direction")) == ends
    assert (row["transport"], row["comm_index"]) == (transport, 1)


@pytest.mark.parametrize("count", ["", " splitCount 3", " childCount 3"])  # 2.21, 2.24 (init.cc), 2.30
@pytest.mark.parametrize("is_regular", [True, False])
def test_ranks_of_a_split_find_each_other(count: str, is_regular: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_regular:
        take_all_for_irregular(monkeypatch)
    whole = (
        "ncclCommInitRank comm 0xa{r} rank {r} nranks 4 cudaDev {r} nvmlDev {r} busId {r}000 commId 0x77 - Init {end}"
    )
    half = (
        "ncclCommSplit comm 0xb{r} rank {local} nranks 2 cudaDev {r} nvmlDev {r} busId {r}000 parent 0xa{r}{count} "
        "color {color} key {r}{end}"
    )
    text = ""
    for r in range(4):
        split = {"r": r, "local": r // 2, "count": count, "color": r % 2}
        text += lines(
            whole.format(r=r, end="START"),
            whole.format(r=r, end="COMPLETE"),
            half.format(end="- Init START", **split),
            half.format(end=" - Init COMPLETE", **split),
            tid=200 + r,
            dev=r,
        )
    comms = tables_of(text)["nccl_communicators"]
    assert comms.select("nranks", "ranks_seen", "parent_comm_index", "split_color", "is_membership_exact").rows() == [
        (4, 4, None, None, True),
        (2, 2, 1, 0, True),
        (2, 2, 1, 1, True),
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        # 2.22, 2.23 on
        (
            "Init timings: rank 0 nranks 4 total 1.50 (kernels 0.10, bootstrap 0.90, allgathers 0.10, topo 0.10, graphs "
            "0.10, connections 0.10, rest 0.10)",
            (1.5, 0.1, None, 0.9),
        ),
        (
            "Init timings - ncclCommInitRankConfig: rank 0 nranks 4 total 1.50 (kernels 0.10, alloc 0.20, bootstrap 0.90, "
            "allgathers 0.10, topo 0.10, graphs 0.10, connections 0.10, rest 0.00)",
            (1.5, 0.1, 0.2, 0.9),
        ),
    ],
)
@pytest.mark.parametrize("is_regular", [True, False])
def test_init_timings(
    text: str, parts: tuple[float | None, ...], is_regular: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_regular:
        take_all_for_irregular(monkeypatch)
    (row,) = tables_of(lines(READY, text))["nccl_ranks"].to_dicts()
    assert (row["init_time_s"], row["init_kernels_s"], row["init_alloc_s"], row["init_bootstrap_s"]) == parts


def test_the_time_counts_for_the_file_when_the_communicators_lines_are_lost() -> None:
    line = "n1:7:7 [0] NCCL INFO Init timings - ncclCommInitRank: rank 0 nranks 2 total {} (kernels 0.02, rest 0.00)\n"
    assert row_of(tables_of(line.format(3.69) + line.format(3.7))["nccl_files"])["init_time_s"] == 3.7


def test_rings_that_do_not_tell_their_number() -> None:
    """Up to 2.4 (init.cc) rank 0 printed `Channel 00 :` and the order of ranks, one line for each channel."""
    rings = [f"Channel {channel:02d} :    0   1   2   3" for channel in range(3)]
    tables = tables_of(lines(*rings, READY))
    assert row_of(tables["nccl_communicators"])["ring_channels"] == 3
    assert row_of(tables["nccl_communicators"])["ring_order"] == "0 1 2 3"
    assert row_of(tables["nccl_files"])["num_channels"] == 3
    assert set(tables["nccl_graphs"]["graph_channels"]) == {"0,1,2"}


@pytest.mark.parametrize("is_regular", [True, False])
def test_rccl_names_the_communicator_behind_rings_and_trees(is_regular: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_regular:
        take_all_for_irregular(monkeypatch)
    owner = "comm 0xa0 nRanks 04 busId c1000"
    text = lines(f"Ring 00 : 3 -> 0 -> 1 {owner}", f"Trees [0] 1/-1/-1->0->2 {owner}", READY)
    edges = tables_of(text)["nccl_graphs"].select("graph", "rank_from", "rank_to").rows()
    assert set(edges) == {("ring", 0, 1), ("tree", 0, 2)}


def test_rccls_links_tell_the_size_of_a_communicator() -> None:
    text = lines("Channel 02/0 : 1[c6000] -> 4[c1000] [receive] via NET/Socket/1 comm 0xa0 nRanks 08")
    assert row_of(tables_of(text)["nccl_files"])["nranks_max"] == 8
