"""Rows of the NCCL tables for small stores: a healthy run of 16 ranks on 2 nodes, one factory per table."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def _of(name: str) -> Row:
    return {"source_path": f"/logs/{name}.log", "run_dir": "/logs"}


def nccl_file_row(name: str = "a", **changes: Any) -> Row:
    """NCCL 2.21.5 over InfiniBand with GPUDirect RDMA."""
    return _of(name) | {
        "sweep": "sweep", "origin": "measured", "nccl_flavour": "NCCL", "nccl_version": "2.21.5", "nranks_max": 16,
        "num_nodes": 2, "num_communicators": 1, "num_channels": 16, "transports": "NET/IB/GDRDMA, P2P/CUMEM",
        "networks": "IB", "num_warns": 0, "num_hangs": 0, "has_coll": False, "has_tuning": False, "coll_calls": 0,
        "bench_rows": 0, "bench_tables": 0, "nccl_lines": 400, "nccl_lines_other": 3, "nccl_lines_damaged": 0,
    } | changes  # fmt: skip


def communicator_row(name: str = "a", **changes: Any) -> Row:
    """The communicator of all ranks."""
    return _of(name) | {
        "comm_index": 1, "comm_hash": "0x1", "nranks": 16, "ranks_seen": 16, "is_membership_exact": True,
        "num_nodes": 2, "ring_channels": 16, "network": "IB", "init_state": "complete", "line_no": 20,
    } | changes  # fmt: skip


def rank_row(name: str = "a", **changes: Any) -> Row:
    """Rank 0 on node n0."""
    return _of(name) | {
        "comm_index": 1, "rank": 0, "nranks": 16, "host": "n0", "pid": 100, "cuda_dev": 0, "init_state": "complete",
        "line_no": 20,
    } | changes  # fmt: skip


def link_row(name: str = "a", **changes: Any) -> Row:
    """A send between the nodes."""
    return _of(name) | {
        "comm_index": 1, "rank_from": 7, "rank_to": 8, "direction": "send", "transport": "NET/IB/GDRDMA",
        "net_devices": "0", "link_channels": 8, "line_no": 60,
    } | changes  # fmt: skip


def warning_row(name: str = "a", **changes: Any) -> Row:
    """A warning that no rule knows."""
    return _of(name) | {
        "warn_class": "other", "severity": "unknown", "text": "something", "num_lines": 1, "host": "n0", "pid": 100,
        "line_no": 80,
    } | changes  # fmt: skip


def bench_row(name: str = "a", **changes: Any) -> Row:
    """The largest size of an all-reduce benchmark."""
    return _of(name) | {
        "table_no": 1, "op": "AllReduce", "nranks": 16, "num_nodes": 2, "message_bytes": 2**33,
        "element_count": 2**31, "datatype": "float", "reduction": "sum", "root": -1, "time_s": 0.17,
        "algbw_bytes_per_s": 48e9, "busbw_bytes_per_s": 90e9, "line_no": 90,
    } | changes  # fmt: skip


def hang_row(name: str = "a", **changes: Any) -> Row:
    """Seven of eight ranks waited for rank 3."""
    return _of(name) | {
        "op": "ALLREDUCE", "seq": 118, "process_group": "0", "numel_in": 1024, "numel_out": 1024,
        "timeout_ms": 600_000, "ran_for_ms": 600_031, "num_ranks": 8, "ranks_reporting": "0,1,2,4,5,6,7",
        "ranks_silent": "3", "ranks_elsewhere": None, "suspect": "3",
        "suspect_reason": "silent while 7 of 8 timed out on ALLREDUCE seq 118", "is_first": True,
        "evidence_source": "watchdog", "line_no": 950,
    } | changes  # fmt: skip
