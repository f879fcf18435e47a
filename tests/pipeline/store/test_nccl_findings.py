"""The rules over NCCL output on small made-up stores: each fires on its evidence and is silent without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sweepscope.schemas.registry import VIEWS
from sweepscope.schemas.vocab.nccl import RULE
from tests.dashboard.store_rows import Row, file_row, run_row, write_real_store
from tests.nccl_rows import (
    bench_row,
    communicator_row,
    device_row,
    graph_row,
    link_row,
    nccl_file_row,
    rank_row,
    warning_row,
)


def findings(tmp_path: Path, **rows: list[Row]) -> list[Row]:
    """Rows of the view on a store of the given rows; a file of each run is there unless stated."""
    path = write_real_store(tmp_path / "store.duckdb", **rows)
    with duckdb.connect(str(path), read_only=True) as connection:
        found: list[Row] = connection.sql("SELECT * FROM nccl_findings ORDER BY ALL").pl().to_dicts()
    return found


def rules(tmp_path: Path, **rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["nccl_rule"], Path(row["source_path"]).stem) for row in findings(tmp_path, **rows)]


def sweep(*names: str, **changes: Any) -> list[Row]:
    return [nccl_file_row(name, **changes) for name in names]


def test_a_healthy_run_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, nccl_files=sweep("a"), nccl_links=[link_row("a")]) == []


def test_every_row_names_rule_remedy_and_source(tmp_path: Path) -> None:
    (row,) = findings(tmp_path, nccl_files=sweep("a"), nccl_links=[link_row("a", transport="NET/IB", line_no=70)])
    assert tuple(row) == VIEWS["nccl_findings"].column_names
    assert row["nccl_rule"] in RULE
    assert "NCCL_NET_GDR_LEVEL" in row["remedy"]
    assert "src/transport/net.cc" in row["fact_source"]
    assert (row["source_path"], row["line_no"], row["places"]) == ("/logs/a.log", 70, 1)


def test_gdrdma_is_asked_of_rdma_networks_only(tmp_path: Path) -> None:
    links = [
        link_row("a", transport="NET/IB", direction="send", line_no=5),
        link_row("a", transport="NET/IB/GDRDMA", direction="receive", line_no=6),
        link_row("b", transport="NET/AWS Libfabric", direction="receive"),
        link_row("c", transport="P2P/CUMEM", direction=None),
        link_row("d", transport="NET/IBext_v8/GDRDMA(PCI)"),
    ]
    found = findings(tmp_path, nccl_files=sweep("a", "b", "c", "d"), nccl_links=links)
    assert [(row["nccl_rule"], row["evidence"]) for row in found] == [
        ("gdrdma_off", "1 of 1 RDMA links go without GDRDMA"),
        ("gdrdma_off", "1 of 2 RDMA links go without GDRDMA, all of them sends"),
    ]


@pytest.mark.parametrize(
    ("file", "more", "because"),
    [
        ({"nccl_env": "NCCL_DEBUG=INFO, NCCL_IB_DISABLE=1"}, {}, "NCCL_IB_DISABLE=1 is set"),
        ({"nccl_env": "NCCL_NET=Socket"}, {}, "NCCL_NET=Socket is set"),
        ({"networks": "IB, Socket"}, {}, "NCCL found IB, Socket"),
        (
            {},
            {"nccl_warnings": [warning_row("a", warn_class="ib_device_unavailable", text="Unable to open device x")]},
            "a device could not be opened: Unable to open device x",
        ),
        ({}, {"nccl_ranks": [rank_row("a", host="n1"), rank_row("b", host="n1")]}, "n1 uses RDMA in b.log"),
    ],
)
def test_sockets_despite_ib_say_how_ib_is_known(tmp_path: Path, file: Row, more: dict[str, Any], because: str) -> None:
    files = [nccl_file_row("a", **({"networks": "Socket"} | file)), nccl_file_row("b")]
    links = [link_row("a", transport="NET/Socket", line_no=12), link_row("b")]
    (row,) = findings(tmp_path, nccl_files=files, nccl_links=links, **more)
    assert (row["nccl_rule"], row["line_no"]) == ("socket_despite_ib", 12)
    assert row["evidence"] == f"1 of 1 network links use NET/Socket; {because}"


def test_sockets_alone_are_no_proof_of_ib(tmp_path: Path) -> None:
    files = sweep("a", networks="Socket", nccl_env="NCCL_IB_DISABLE=0")
    assert rules(tmp_path, nccl_files=files, nccl_links=[link_row("a", transport="NET/Socket")]) == [
        ("socket_network", "a")
    ]


def test_a_tensor_group_across_nodes_is_told_by_its_size_and_identity(tmp_path: Path) -> None:
    layout: Row = {"tp": 4, "dp": 8, "pp": 1, "cp": 1, "ep": None, "num_gpus": 32, "gpus_per_node": 8}
    groups = [
        communicator_row("a", comm_index=1, nranks=32, num_nodes=4),
        communicator_row("a", comm_index=2, nranks=4, num_nodes=2, line_no=40),
        communicator_row("a", comm_index=3, nranks=4, num_nodes=1, line_no=30),
        communicator_row("b", comm_index=1, nranks=4, num_nodes=2, is_membership_exact=False),
        communicator_row("c", comm_index=1, nranks=4, num_nodes=2),
    ]
    runs = [
        run_row("a", source_path="/logs/a.log", **layout),
        run_row("b", source_path="/logs/b.log", **layout),
        run_row("c", source_path="/logs/c.log", **layout | {"dp": 4, "num_gpus": 16}),  # DP groups have 4 ranks as well
        run_row("d", source_path="/logs/d.log", **layout | {"tp": 16, "dp": 2}),
    ]
    found = findings(tmp_path, nccl_files=sweep("a", "b", "c", "d"), nccl_communicators=groups, runs=runs)
    assert [(row["nccl_rule"], row["evidence"], row["line_no"]) for row in found] == [
        ("tp_across_nodes", "TP16 on nodes of 8 GPUs", None),
        ("tp_across_nodes", "TP4: 1 of the 2 communicators of that size span 2 nodes", 40),
    ]


def test_fewer_channels_needs_three_like_runs_of_one_version(tmp_path: Path) -> None:
    files = [*sweep("a", "b", "c"), nccl_file_row("d", nccl_version="2.27.5")]
    groups = [communicator_row(name, ring_channels=n) for name, n in (("a", 24), ("b", 24), ("c", 2), ("d", 4))]
    (row,) = findings(tmp_path, nccl_files=[f | {"sweep": None} for f in files], nccl_communicators=groups)
    assert (row["nccl_rule"], Path(row["source_path"]).stem) == ("fewer_channels", "c")
    assert row["evidence"] == "2 ring channels for 16 ranks; the median of 3 like runs is 24"
    two = tmp_path / "two"
    two.mkdir()
    assert rules(two, nccl_files=files[1:3], nccl_communicators=groups[1:3]) == []


def test_versions_mixed_in_a_run_and_in_a_sweep(tmp_path: Path) -> None:
    files = [*sweep("a", "b"), nccl_file_row("c", nccl_version="2.27.5"), nccl_file_row("d", nccl_version=None)]
    units = [file_row(f"/logs/{name}.log", unit=unit) for name, unit in (("a", "/r1"), ("b", "/r2"), ("c", "/r2"))]
    found = {row["nccl_rule"]: row for row in findings(tmp_path, nccl_files=files, files=units)}
    assert set(found) == {"mixed_versions_run", "mixed_versions_sweep"}
    assert found["mixed_versions_run"]["places"] == 2
    assert found["mixed_versions_sweep"]["evidence"] == "2 versions in 3 files: NCCL 2.21.5 (2), NCCL 2.27.5 (1)"


def test_builds_of_one_version_are_no_mixture(tmp_path: Path) -> None:
    files = [nccl_file_row("a", nccl_version="2.29.2"), nccl_file_row("b", nccl_version="2.29.2+cuda13.1")]
    assert findings(tmp_path, nccl_files=files) == []


def test_a_version_mismatch_that_nccl_reports(tmp_path: Path) -> None:
    warning = warning_row("a", warn_class="version_mismatch", text="Mismatched NCCL version detected", line_no=9)
    (row,) = findings(tmp_path, nccl_files=sweep("a"), nccl_warnings=[warning])
    assert (row["nccl_rule"], row["line_no"]) == ("mixed_versions_run", 9)


def test_sharp_fallback_counts_its_lines_and_other_warnings_do_not(tmp_path: Path) -> None:
    warnings = [
        warning_row("a", warn_class="sharp_fallback", text="SHARP coll init error", num_lines=16, line_no=9),
        warning_row("a", warn_class="sharp_fallback", text="Cannot initialize CollNet", num_lines=2, line_no=20),
        warning_row("a", warn_class="teardown_noise", text="Accept failed", num_lines=99, line_no=1),
    ]
    (row,) = findings(tmp_path, nccl_files=sweep("a"), nccl_warnings=warnings)
    assert (row["nccl_rule"], row["places"], row["line_no"]) == ("sharp_fallback", 18, 9)
    assert row["evidence"] == "SHARP coll init error"


def test_slow_initialisation_is_slow_against_like_runs_and_in_seconds(tmp_path: Path) -> None:
    times = {"a": 2.0, "b": 2.2, "c": 40.0, "d": 6.9}  # d: three times the median, but within five seconds of it
    groups = [
        communicator_row(name, init_time_s=time, init_bootstrap_s=38.0, init_slowest_rank=3)
        for name, time in times.items()
    ]
    (row,) = findings(tmp_path, nccl_files=sweep(*times), nccl_communicators=groups)
    assert (row["nccl_rule"], Path(row["source_path"]).stem) == ("slow_init", "c")
    assert row["evidence"] == (
        "40.0 s to initialise 16 ranks; the median of 4 like runs is 4.6 s, 38.0 s of it in bootstrap, slowest rank 3"
    )


def test_low_bandwidth_names_the_hosts_and_a_bad_host_is_told_from_its_partners(tmp_path: Path) -> None:
    pairs = {"ab": 90.0, "cd": 92.0, "ac": 91.0, "bx": 40.0, "dx": 42.0, "bd": 90.0}
    files = sweep(*pairs)
    hosts = [rank_row(name, rank=i, host=host) for name in pairs for i, host in enumerate(name)]
    bench = [
        bench_row(name, message_bytes=size, busbw_bytes_per_s=speed * 1e9 * share, line_no=line)
        for name, speed in pairs.items()
        for line, (size, share) in enumerate([(2**20, 0.2), (2**33, 1.0)], start=50)
    ]
    found = findings(tmp_path, nccl_files=files, nccl_ranks=hosts, nccl_bench=bench)
    assert [(row["nccl_rule"], Path(row["source_path"]).stem, row["line_no"]) for row in found] == [
        ("low_busbw", "bx", 51),
        ("low_busbw", "dx", 51),
        ("slow_host", "bx", 51),
    ]
    assert found[0]["evidence"] == (
        "AllReduce at 40.0 GB/s with 16 ranks; the median of 6 like benchmarks is 90.0 GB/s (hosts b, x)"
    )
    assert found[2]["evidence"].startswith("x is in 2 benchmarks, each below 80 %")
    other = tmp_path / "other"
    other.mkdir()
    settings = [file | {"nccl_env": f"NCCL_ALGO={i}"} for i, file in enumerate(files)]
    assert rules(other, nccl_files=settings, nccl_ranks=hosts, nccl_bench=bench) == []


def on_two_hosts(name: str = "a", gpus: int = 2) -> list[Row]:
    return [
        rank_row(name, rank=rank, host=f"n{rank // gpus}", nranks=2 * gpus, pid=rank, cuda_dev=rank % gpus)
        for rank in range(2 * gpus)
    ]


def test_links_inside_a_node_over_the_network_or_through_memory(tmp_path: Path) -> None:
    links = [
        link_row("a", rank_from=0, rank_to=1, transport="NET/IB/GDRDMA", line_no=5),
        link_row("a", rank_from=1, rank_to=0, transport="SHM/direct/direct", direction=None, line_no=6),
        link_row("a", rank_from=2, rank_to=3, transport="P2P/CUMEM", direction=None, line_no=7),
        link_row("a", rank_from=1, rank_to=2, line_no=8),  # between nodes
        link_row("b", rank_from=0, rank_to=1, transport="NET/IB/GDRDMA"),  # no host is known there
    ]
    found = findings(tmp_path, nccl_files=sweep("a", "b"), nccl_links=links, nccl_ranks=on_two_hosts())
    assert [(row["nccl_rule"], row["evidence"], row["line_no"]) for row in found] == [
        ("net_within_node", "1 of 3 links inside nodes go over the network, on n0", 5),
        ("shm_within_node", "1 of 3 links inside nodes go through host memory", 6),
    ]


def test_devices_that_stay_idle(tmp_path: Path) -> None:
    def stage(name: str, *, gpus: int, layers: tuple[str, ...] = ("IB", "IB", "IB", "IB")) -> dict[str, list[Row]]:
        far = {"rank_from": gpus - 1, "rank_to": gpus}
        devices = [
            device_row(name, host=host, net_device=at, device_name=f"mlx5_{at}", link_layer=layer)
            for host in ("n0", "n1")
            for at, layer in enumerate(layers)
        ]
        return {
            "nccl_links": [link_row(name, **far, line_no=3), link_row(name, **far, direction="receive", line_no=4)],
            "nccl_devices": devices,
            "nccl_ranks": on_two_hosts(name, gpus),
        }

    stages = [stage("a", gpus=4), stage("b", gpus=1), stage("c", gpus=4, layers=("IB", "RoCE", "RoCE"))]
    merged = {table: [row for one in stages for row in one[table]] for table in stages[0]}
    (row,) = findings(tmp_path, nccl_files=sweep("a", "b", "c"), **merged)
    assert (row["nccl_rule"], row["source_path"], row["places"], row["line_no"]) == ("idle_nics", "/logs/a.log", 2, 3)
    assert row["evidence"] == "n0 uses 1 of its 4 IB devices (mlx5_0) for 4 GPUs; 1 more hosts alike"


_OFTEN = "between hosts more often than once per host"


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ([0, 1, 2, 3], []),
        ([0, 2, 1, 3], [f"1 of 1 rings cross {_OFTEN}; one of 4 ranks 4 times for 2 hosts"]),
    ],
)
def test_a_ring_that_goes_to_and_fro(tmp_path: Path, order: list[int], found: list[str]) -> None:
    edges = [graph_row("a", rank_from=x, rank_to=y) for x, y in zip(order, [*order[1:], order[0]], strict=True)]
    rows = findings(tmp_path, nccl_files=sweep("a"), nccl_graphs=edges, nccl_ranks=on_two_hosts())
    assert [(row["nccl_rule"], row["evidence"]) for row in rows] == [("ring_crossings", text) for text in found]


def test_a_ring_that_was_cut_says_nothing_of_its_crossings(tmp_path: Path) -> None:
    edges = [graph_row("a", rank_from=x, rank_to=y) for x, y in ((0, 2), (2, 1), (1, 3))]
    assert findings(tmp_path, nccl_files=sweep("a"), nccl_graphs=edges, nccl_ranks=on_two_hosts()) == []


def test_connections_that_change_the_rail(tmp_path: Path) -> None:
    links = [
        link_row("a", net_devices="0", line_no=5),
        link_row("a", net_devices="1", direction="receive", line_no=6),
        link_row("a", rank_from=3, rank_to=12, net_devices="2", line_no=7),
        link_row("a", rank_from=3, rank_to=12, net_devices="2", direction="receive", line_no=8),
        link_row("b", net_devices="0"),
        link_row("b", net_devices="1", direction="receive"),
        link_row("c", transport="NET/Socket", net_devices="0"),
    ]
    other = [device_row("b", host=host, net_device=0, device_name=name) for host, name in (("n0", "x"), ("n1", "y"))]
    rows = findings(tmp_path, nccl_files=sweep("a", "b"), nccl_links=links[:-1], nccl_devices=other)
    assert [(row["nccl_rule"], row["evidence"], row["line_no"]) for row in rows] == [
        (
            "cross_nic",
            "1 of 2 connections between nodes leave by another device than they arrive at; rank 7 to 8: 0 and 1",
            5,
        )
    ]


def test_ranks_told_by_line_order_alone_prove_no_place(tmp_path: Path) -> None:
    order = [0, 2, 1, 3]
    rows: dict[str, list[Row]] = {
        "nccl_communicators": [communicator_row("a", nranks=4, is_membership_exact=False, ring_channels=None)],
        "nccl_graphs": [graph_row("a", rank_from=x, rank_to=y) for x, y in zip(order, [2, 1, 3, 0], strict=True)],
        "nccl_links": [
            link_row("a", rank_from=0, rank_to=1, net_devices="0", direction="send"),
            link_row("a", rank_from=0, rank_to=1, net_devices="1", direction="receive", line_no=61),
        ],
        "nccl_ranks": on_two_hosts(),
    }
    assert findings(tmp_path, nccl_files=sweep("a"), **rows) == []
