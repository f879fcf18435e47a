"""Logs from which host, process and thread of each line were taken before they were published."""

from __future__ import annotations

import re

import pytest

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.schemas.registry import NCCL_TABLES
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.reading import row_of, tables_of
from tests.properties import pairs

PREFIX = re.compile(r"^node-\d+:\d+:\d+ ", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "before"), pairs(VERSIONS, ["", "  "]))
def test_what_does_not_need_the_host_is_read(version: str, before: str) -> None:
    job = render(Job(version, nodes=1, gpus=4, calls=8, warns=3))
    tables = tables_of(PREFIX.sub(before, job.text()))
    row = row_of(tables["nccl_files"])
    assert (row["nranks_max"], row["num_communicators"], row["num_channels"], row["num_warns"]) == (4, 1, 4, 3)
    assert str(row["nccl_version"]).startswith(version.split("-", 1)[0])
    assert (row["coll_calls"], row["transports"]) == (32, "P2P/CUMEM/read" if job.number >= (2, 18) else "P2P/IPC")
    comm = row_of(tables["nccl_communicators"])
    assert (comm["ranks_seen"], comm["coll_calls"], comm["init_state"]) == (4, 32, "complete")
    assert (comm.get("num_nodes") == 1) is (job.number >= (2, 20))  # told by the log, not by hosts
    assert tables["nccl_ranks"].select("host", "pid").null_count().row(0) == (4, 4)
    for table in NCCL_TABLES:
        assert validate(table, tables[table.name]).rejects.is_empty(), table.name


def test_among_whole_lines_they_were_torn_and_tell_nothing() -> None:
    job = render(Job("2.21.5", nodes=1, gpus=2, warns=1))
    torn = "[1] NCCL INFO comm 0x9 rank 1 nranks 64 cudaDev 1 nvmlDev 1 busId 1b000 commId 0x1 - Init COMPLETE\n"
    row = row_of(tables_of(job.text() + torn + "[0] transport/net.cc:7 NCCL WARN NET/IB : torn\n")["nccl_files"])
    assert (row["nranks_max"], row["num_communicators"], row["num_warns"], row["nccl_lines_damaged"]) == (2, 1, 1, 2)


def test_lines_without_their_whole_prefix_are_read() -> None:
    tables = tables_of(
        "NCCL INFO NCCL version 2.24.3+cuda12.2\n"
        "NCCL INFO Using network IBext_v8\n"
        "NCCL INFO ncclCommInitRankConfig comm 0x57a7c7b82cf0 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1a000 "
        "commId 0xdf5506ed2c65f234 - Init START\n"
        "# NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 64 cudaDev 0 busId 1a000 - Init COMPLETE\n"
        "NCCL WARN Cuda failure 1 'invalid argument'\n"
    )
    row = row_of(tables["nccl_files"])
    assert (row["nccl_version"], row["nranks_max"], row["networks"]) == ("2.24.3+cuda12.2", 8, "IBext_v8")
    assert (row["num_warns"], row["first_warn"]) == (1, "Cuda failure 1 'invalid argument'")
    assert tables["nccl_ranks"].select("host", "pid").null_count().row(0) == (1, 1)
