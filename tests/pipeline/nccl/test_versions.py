"""One job, as each version of NCCL and RCCL prints it, gives the same answers."""

from __future__ import annotations

import polars as pl
import pytest

from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.reading import row_of, tables_of

versions = pytest.mark.parametrize("version", VERSIONS)
TIMED = ("2.24.3", "2.29.2")


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


@versions
def test_calls_are_added_up_per_size(version: str) -> None:
    job = render(Job(version, nodes=1, gpus=4, calls=60))
    rows = tables_of(job.text())["nccl_collectives"]
    told = {(op, count): calls for op, count, calls in rows.select("op", "element_count", "calls").iter_rows()}
    assert told == dict(job.calls_by_op)
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
        ("NCCL version 2.18.3+cuda12.2\nNCCL version 2.20.5+cuda12.4\n", "2.18.3+cuda12.2, 2.20.5+cuda12.4", "NCCL"),
        ("n:1:1 [0] NCCL INFO RCCL_MSCCL_ENABLE set by environment to 0.\n", None, "RCCL"),
    ],
)
def test_the_version_is_named_once(text: str, version: str | None, flavour: str) -> None:
    row = row_of(tables_of(text)["nccl_files"])
    assert (row.get("nccl_version"), row["nccl_flavour"]) == (version, flavour)
