"""Which lines form a communicator: splits, addresses used again, files cut at either end."""

from __future__ import annotations

import textwrap

import pytest

from tests.pipeline.nccl.reading import row_of, tables_of

P = "n1:{pid}:{pid} [{dev}] NCCL INFO "


def log(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def init(
    rank: int, nranks: int, *, comm: str = "0x5a", more: str = " commId 0xab", state: str = "Init COMPLETE"
) -> str:
    return (
        P.format(pid=100 + rank, dev=rank)
        + f"ncclCommInitRank comm {comm} rank {rank} nranks {nranks} cudaDev {rank} nvmlDev {rank} busId 1b000{more} - {state}"
    )


def split(rank: int, nranks: int, color: int, *, pid: int, comm: str, parent: str = "0x5a", count: int = 1) -> str:
    prefix = P.format(pid=pid, dev=0)
    fields = f"parent {parent} splitCount {count} color {color} key 0"
    return f"{prefix}ncclCommSplit comm {comm} rank {rank} nranks {nranks} cudaDev 0 nvmlDev 0 busId 1b000 {fields}- Init START"


def test_ranks_with_one_identity_are_one_communicator() -> None:
    tables = tables_of(log(*(init(rank, 4) for rank in (2, 0, 3, 1))))
    comm = row_of(tables["nccl_communicators"])
    assert (comm["comm_hash"], comm["nranks"], comm["ranks_seen"], comm["init_state"]) == ("0xab", 4, 4, "complete")
    assert comm["comm_api"] == "ncclCommInitRank"
    assert tables["nccl_ranks"]["cuda_dev"].to_list() == [0, 1, 2, 3]


def test_splits_are_told_by_parent_and_colour() -> None:
    parents = [init(rank, 4) for rank in range(4)]
    # Parents have the same address in every process; colour 0 has the even ranks.
    children = [split(r // 2, 2, r % 2, pid=100 + r, comm=f"0x6{r}") for r in range(4)]
    done = [line.replace("- Init START", " - Init COMPLETE") for line in children]
    tables = tables_of(log(*parents, *children, *done))
    comms = tables["nccl_communicators"].filter(nranks=2).sort("split_color")
    assert comms.select("split_color", "parent_comm_index", "ranks_seen").rows() == [(0, 1, 2), (1, 1, 2)]
    assert comms["comm_api"].to_list() == ["ncclCommSplit"] * 2
    pids = tables["nccl_ranks"].filter(nranks=2).group_by("comm_index", maintain_order=True).agg("pid")["pid"].to_list()
    assert pids == [[100, 102], [101, 103]]


def test_an_identity_that_splits_share_does_not_join_them() -> None:
    """Until 2.23 the hash of a split's zeroed id is the same for all."""
    more = " commId 0xffff"
    lines = [init(rank, 2, comm=f"0x{place}{rank}", more=more) for place in range(3) for rank in range(2)]
    comms = tables_of(log(*lines))["nccl_communicators"]
    assert comms.select("nranks", "ranks_seen").rows() == [(2, 2)] * 3


def test_a_communicator_that_only_began_is_counted_as_such() -> None:
    tables = tables_of(log(init(0, 2), init(1, 2, state="Init START")))
    assert row_of(tables["nccl_communicators"])["init_state"] == "started"
    tables = tables_of(log(init(1, 2, state="Init START")))
    assert row_of(tables["nccl_files"])["num_communicators"] == 0


@pytest.mark.parametrize(("end", "state"), [("Destroy COMPLETE", "destroyed"), ("Abort COMPLETE", "aborted")])
def test_how_a_communicator_ended(end: str, state: str) -> None:
    over = P.format(pid=100, dev=0) + f"comm 0x5a rank 0 nranks 1 cudaDev 0 busId 1b000 - {end}"
    assert row_of(tables_of(log(init(0, 1), over))["nccl_ranks"])["init_state"] == state


def test_an_address_that_is_used_again_is_another_communicator() -> None:
    call = P.format(pid=100, dev=0) + (
        "AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x1 count {c} datatype 7 op 0 root 0 comm 0x5a [nranks=1] stream 0x2"
    )
    over = P.format(pid=100, dev=0) + "comm 0x5a rank 0 nranks 1 cudaDev 0 busId 1b000 - Destroy COMPLETE"
    first = [init(0, 1), *(call.format(n=n, c=8) for n in range(300)), over]
    again = [init(0, 1, more=" commId 0xcd"), *(call.format(n=n, c=8) for n in range(500))]
    tables = tables_of(log(*first, *again))
    assert tables["nccl_collectives"].select("comm_index", "calls").sort("comm_index").rows() == [(1, 300), (2, 500)]
    ranks = tables["nccl_ranks"].sort("comm_index")
    assert ranks.select("comm_index", "coll_calls", "last_op_count").rows() == [(1, 300, 299), (2, 500, 499)]


def test_calls_without_an_initialisation_line_have_no_communicator() -> None:
    text = (
        P.format(pid=1, dev=0)
        + "Send: opCount ff sendbuff 0x1 recvbuff (nil) count 4 datatype 9 op 0 root 3 comm 0x5a [nranks=8] stream 0x2\n"
    )
    row = row_of(tables_of(text)["nccl_collectives"])
    assert (row["op"], row["root"], row["message_bytes"], row["nranks"]) == ("Send", 3, 8, 8)
    assert "comm_index" not in row


def test_timings_follow_their_own_thread() -> None:
    """2.22 prints no call's name."""
    timing = "Init timings: rank {r} nranks 2 total {t} (kernels 0.1, bootstrap 2.0, allgathers 0.1, topo 0.1, graphs 0.1, connections 0.1, rest 0.1)"
    lines = [
        init(0, 2),
        init(1, 2),
        P.format(pid=101, dev=1) + timing.format(r=1, t="3.50"),
        P.format(pid=100, dev=0) + timing.format(r=0, t="2.25"),
    ]
    ranks = tables_of(log(*lines))["nccl_ranks"]
    assert ranks.select("rank", "init_time_s", "init_bootstrap_s", "init_alloc_s").rows() == [
        (0, 2.25, 2.0, None),
        (1, 3.5, 2.0, None),
    ]


def test_links_that_are_made_late_belong_to_the_communicator_before() -> None:
    """NCCL_RUNTIME_CONNECT=1: rings are connected at the first collective, after Init COMPLETE, by another thread."""
    text = log(init(0, 2), "n1:100:777 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct")
    assert row_of(tables_of(text)["nccl_links"])["comm_index"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("via", "transport", "device"),
    [
        ("P2P/IPC/read", "P2P/IPC/read", None),
        ("P2P/indirect/5[b7000]", "P2P/indirect", None),
        ("P2P/direct pointer", "P2P/direct pointer", None),
        ("SHM/direct/CE", "SHM/direct/CE", None),
        ("direct shared memory", "SHM", None),
        ("NET/IB/3/GDRDMA", "NET/IB/GDRDMA", "3"),
        ("NET/IBext_v8/0(12)/GDRDMA/Shared", "NET/IBext_v8/GDRDMA", "0"),
        ("NET/Socket/1", "NET/Socket", "1"),
        ("NET/AWS Libfabric/2/GDRDMA(PCI)", "NET/AWS Libfabric/GDRDMA(PCI)", "2"),
    ],
)
def test_every_transport_has_its_name(via: str, transport: str, device: str | None) -> None:
    row = row_of(
        tables_of(log(init(0, 2), f"n1:100:100 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via {via}"))[
            "nccl_links"
        ]
    )
    assert (row["transport"], row.get("net_devices")) == (transport, device)


@pytest.mark.parametrize("via", ["P2P/CUMEM/rea", "NET/IB", "NET/IB/0/GDR", "P2P/CUM", "SHM/dir"])
def test_what_is_cut_is_no_transport(via: str) -> None:
    tables = tables_of(log(init(0, 2), f"n1:100:100 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via {via}"))
    assert tables["nccl_links"].is_empty()
    assert row_of(tables["nccl_files"]).get("transports") is None


def test_a_host_that_swallowed_a_cut_text_is_mended() -> None:
    text = textwrap.dedent("""\
        n7:5:5 [0] NCCL INFO Bootstrap : Using eth0
        n8:6:6 [0] NCCL INFO Connected all rin7:5:5 [0] NCCL INFO comm 0x5a rank 0 nranks 1 cudaDev 0 busId 1b000 - Init COMPLETE
        """)
    tables = tables_of(text)
    assert row_of(tables["nccl_ranks"])["host"] == "n7"
    assert row_of(tables["nccl_files"])["nccl_lines_damaged"] == 1


def test_one_address_in_two_processes_is_two_communicators() -> None:
    call = "{host}:100:100 [0] NCCL INFO AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x1 count 8 datatype 7 op 0 root 0 comm 0x5a [nranks={size}] stream 0x2"
    lines = [call.format(host=host, n=n, size=size) for n in range(400) for host, size in (("n1", 2), ("n2", 4))]
    rows = tables_of(log(*lines))["nccl_collectives"]
    assert rows["calls"].sum() == 800
    # Without their initialisation only the size tells the two apart, and here not even that may be said.
    assert set(rows["nranks"].to_list()) <= {2, 4, None}
    assert rows["ranks_calling"].sum() == 2


def test_nccl_2_3_says_complete_alone() -> None:
    tables = tables_of(
        log(*(P.format(pid=9, dev=rank) + f"comm 0x5{rank} rank {rank} nranks 2 - COMPLETE" for rank in (0, 1)))
    )
    comm = row_of(tables["nccl_communicators"])
    assert (comm["nranks"], comm["ranks_seen"], comm["init_state"]) == (2, 2, "complete")
    assert tables["nccl_files"]["num_communicators"].to_list() == [1]
