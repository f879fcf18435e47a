"""Rows of the NCCL tables for small stores: a healthy run of 16 ranks on 2 nodes, one factory per table."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def _of(name: str) -> Row:
    return {"source_path": f"/logs/{name}.log", "run_dir": "/logs"}


def nccl_file_row(name: str = "a", **changes: Any) -> Row:
    """NCCL 2.21.5 over InfiniBand with GPUDirect RDMA."""
    return (
        _of(name)
        | {
            "sweep": "sweep",
            "origin": "measured",
            "nccl_flavour": "NCCL",
            "nccl_version": "2.21.5",
            "nranks_max": 16,
            "num_nodes": 2,
            "num_communicators": 1,
            "num_channels": 16,
            "transports": "NET/IB/GDRDMA, P2P/CUMEM",
            "networks": "IB",
            "num_warns": 0,
            "num_hangs": 0,
            "has_coll": False,
            "has_tuning": False,
            "coll_calls": 0,
            "bench_rows": 0,
            "bench_tables": 0,
            "nccl_lines": 400,
            "nccl_lines_other": 3,
            "nccl_lines_damaged": 0,
        }
        | changes
    )


def communicator_row(name: str = "a", **changes: Any) -> Row:
    """The communicator of all ranks."""
    return (
        _of(name)
        | {
            "comm_index": 1,
            "comm_hash": "0x1",
            "nranks": 16,
            "ranks_seen": 16,
            "is_membership_exact": True,
            "num_nodes": 2,
            "ring_channels": 16,
            "network": "IB",
            "init_state": "complete",
            "line_no": 20,
        }
        | changes
    )


def rank_row(name: str = "a", **changes: Any) -> Row:
    """Rank 0 on node n0."""
    return (
        _of(name)
        | {
            "comm_index": 1,
            "rank": 0,
            "nranks": 16,
            "host": "n0",
            "pid": 100,
            "cuda_dev": 0,
            "init_state": "complete",
            "line_no": 20,
        }
        | changes
    )


def link_row(name: str = "a", **changes: Any) -> Row:
    """A send between the nodes."""
    return (
        _of(name)
        | {
            "comm_index": 1,
            "rank_from": 7,
            "rank_to": 8,
            "direction": "send",
            "transport": "NET/IB/GDRDMA",
            "net_devices": "0",
            "link_channels": 8,
            "line_no": 60,
        }
        | changes
    )


def warning_row(name: str = "a", **changes: Any) -> Row:
    """A warning that no rule knows."""
    return (
        _of(name)
        | {
            "warn_class": "other",
            "severity": "unknown",
            "text": "something",
            "num_lines": 1,
            "host": "n0",
            "pid": 100,
            "line_no": 80,
        }
        | changes
    )


def bench_row(name: str = "a", **changes: Any) -> Row:
    """The largest size of an all-reduce benchmark."""
    return (
        _of(name)
        | {
            "table_no": 1,
            "op": "AllReduce",
            "nranks": 16,
            "num_nodes": 2,
            "message_bytes": 2**33,
            "element_count": 2**31,
            "datatype": "float",
            "reduction": "sum",
            "root": -1,
            "time_s": 0.17,
            "algbw_bytes_per_s": 48e9,
            "busbw_bytes_per_s": 90e9,
            "line_no": 90,
        }
        | changes
    )


def hang_row(name: str = "a", **changes: Any) -> Row:
    """Seven of eight ranks waited for rank 3."""
    return (
        _of(name)
        | {
            "op": "ALLREDUCE",
            "seq": 118,
            "process_group": "0",
            "numel_in": 1024,
            "numel_out": 1024,
            "timeout_ms": 600_000,
            "ran_for_ms": 600_031,
            "num_ranks": 8,
            "ranks_reporting": "0,1,2,4,5,6,7",
            "ranks_silent": "3",
            "ranks_elsewhere": None,
            "suspect": "3",
            "suspect_reason": "silent while 7 of 8 timed out on ALLREDUCE seq 118",
            "is_first": True,
            "evidence_source": "watchdog",
            "line_no": 950,
        }
        | changes
    )


def hang_line_row(kind: str = "timeout", name: str = "a", **changes: Any) -> Row:
    """Rank 0 gave up on the collective of `hang_row`."""
    is_timeout = kind == "timeout"
    return (
        _of(name)
        | {
            "hang_line_kind": kind,
            "rank": 0,
            "op": "ALLREDUCE" if is_timeout else None,
            "seq": 118 if is_timeout else None,
            "process_group": None if is_timeout else "0",
            "ran_for_ms": 600_031 if is_timeout else None,
            "timeout_ms": 600_000 if is_timeout else None,
            "last_enqueued_seq": None,
            "last_completed_seq": None,
            "printed_at": None,
            "printed_after_s": None,
            "text": "[rank0]: Watchdog caught collective operation timeout",
            "line_no": 950,
        }
        | changes
    )


def flight_row(name: str = "nccl_trace_rank_0", **changes: Any) -> Row:
    """A completed all-reduce of the default group."""
    return (
        _of(name)
        | {
            "dump_version": "2.10",
            "rank": 0,
            "record_id": 10,
            "pg_name": "0",
            "pg_desc": "default_pg",
            "pg_ranks": "0,1,2,3",
            "seq": 118,
            "op": "all_reduce",
            "profiling_name": "nccl:all_reduce",
            "is_p2p": False,
            "op_state": "completed",
            "is_retired": True,
            "input_sizes": "[[1024]]",
            "input_dtypes": "Float",
            "output_sizes": "[[1024]]",
            "output_dtypes": "Float",
            "created_ns": 1_700_000_000_000_000_000,
            "line_no": 1,
        }
        | changes
    )


def graph_row(name: str = "a", **changes: Any) -> Row:
    """Rank 7 sends to rank 8 in ring 0."""
    return (
        _of(name)
        | {
            "comm_index": 1,
            "graph": "ring",
            "rank_from": 7,
            "rank_to": 8,
            "num_graph_channels": 1,
            "graph_channels": "0",
            "line_no": 30,
        }
        | changes
    )


def collective_row(name: str = "a", **changes: Any) -> Row:
    """Ten all-reduces of 1 GiB."""
    return (
        _of(name)
        | {
            "comm_index": 1,
            "nranks": 16,
            "op": "AllReduce",
            "datatype": "float32",
            "element_count": 2**28,
            "reduction": "sum",
            "ranks_calling": 16,
            "calls": 160,
            "collectives": 10,
            "message_bytes": 2**30,
            "total_bytes": 10 * 2**30,
            "line_no": 100,
        }
        | changes
    )


def device_row(name: str = "a", **changes: Any) -> Row:
    """The first InfiniBand device of node n0."""
    return (
        _of(name)
        | {
            "host": "n0",
            "net_kind": "IB",
            "net_device": 0,
            "device_name": "mlx5_0",
            "device_port": "1",
            "link_layer": "IB",
            "line_no": 10,
        }
        | changes
    )
