"""Rows behind the pages on memory, network and hangs: one small store on which each has everything to draw."""

from __future__ import annotations

from sweepscope.pipeline.reference.accelerators import load_accelerators
from tests.dashboard.app_pages.test_run_traces import kernel, step
from tests.dashboard.store_rows import Row, event_row, file_row, run_row
from tests.memory_rows import GIB, OOM_LINE, memory_estimate, memory_tables, trained
from tests.nccl_rows import (
    bench_row,
    collective_row,
    communicator_row,
    flight_row,
    graph_row,
    hang_line_row,
    hang_row,
    link_row,
    nccl_file_row,
    rank_row,
)

_RANKS = 16
_DUMPS = {"run_dir": "/dumps"}


def evidence() -> dict[str, list[Row]]:
    """Five completed runs, one that ran out of memory, a snapshot; a run over sockets and with profiler traces, "rb";
    a topology and hangs.
    """
    traced = run_row("rb", source_path="/logs/b.log", run_dir="/sweep/a", layout="DP8 TP2 PP1")
    return _memory() | _network() | _hangs() | _traces() | {"runs": [*_runs(), traced]}


def _traces() -> dict[str, list[Row]]:
    return {
        "trace_steps": [step(rank, number, 2.0 - rank) for rank in (0, 1) for number in (1, 2)],
        "trace_collectives": [kernel(rank, "AllReduce", calls=6, kernel_s=0.6) for rank in (0, 1)],
    }


def _runs() -> list[Row]:
    completed = [
        run_row(
            f"c{at}",
            layout=f"DP16 TP{at}",
            accelerator="H100-SXM-80GB",
            mem_peak_allocated_bytes=(40 + at) * GIB,
            mem_peak_reserved_bytes=(44 + at) * GIB,
        )
        for at in range(1, 6)
    ]
    nothing = {"mem_peak_allocated_bytes": None, "mem_peak_reserved_bytes": None}
    return [*completed, run_row("f1", status="oom", accelerator="H100-SXM-80GB", **nothing)]


def _memory() -> dict[str, list[Row]]:
    return {
        "events": [event_row("f1", kind="oom", text=OOM_LINE)],
        "estimates": [memory_estimate(f"c{at}", activations=20 + 2 * at) for at in range(1, 6)],
        "accelerators": load_accelerators().to_dicts(),
        **memory_tables("/logs/c1", trained(layers=4)),
    }


def _network() -> dict[str, list[Row]]:
    """Run "a" over InfiniBand, with its ring over two nodes; run "b" over sockets."""
    following = [(rank, (rank + 1) % _RANKS) for rank in range(_RANKS)]
    return {
        "nccl_files": [nccl_file_row("a"), nccl_file_row("b", nccl_env="NCCL_IB_DISABLE=1")],
        "nccl_communicators": [communicator_row(name, init_time_s=2.0) for name in ("a", "b")],
        "nccl_ranks": [
            rank_row("a", rank=rank, host=f"n{rank // 8}", cuda_dev=rank % 8, nranks=_RANKS) for rank in range(_RANKS)
        ],
        "nccl_links": [
            *(
                link_row(
                    "a",
                    rank_from=start,
                    rank_to=end,
                    transport="P2P/CUMEM" if start // 8 == end // 8 else "NET/IB/GDRDMA",
                    line_no=60 + start,
                )
                for start, end in following
            ),
            link_row("b", transport="NET/Socket", line_no=77),
        ],
        "nccl_graphs": [graph_row("a", rank_from=start, rank_to=end, line_no=30 + start) for start, end in following],
        "nccl_collectives": [collective_row("a", nranks=_RANKS, ranks_calling=_RANKS)],
        "nccl_bench": [
            bench_row(name, nranks=8 * nodes, num_nodes=nodes, message_bytes=2**power, line_no=10 * nodes + power)
            for name in ("a", "b")
            for nodes in (1, 2, 4)
            for power in (10, 20, 33)
        ],
    }


def _hangs() -> dict[str, list[Row]]:
    """Two that the watchdog of "b" told of, and one of which three ranks' flight recorders tell."""
    dumps = [f"/logs/trace_rank_{rank}.log" for rank in (0, 1)]
    return {
        "nccl_hangs": [
            hang_row("b"),
            hang_row(
                "b",
                seq=7,
                suspect=None,
                suspect_reason="not determinable: all 8 ranks entered",
                line_no=960,
                ranks_reporting="0,1,2,3,4,5,6,7",
                ranks_silent=None,
                is_first=False,
            ),
            hang_row(
                "trace_rank_0",
                op="all_reduce",
                process_group="0(default_pg)",
                num_ranks=3,
                line_no=4,
                ranks_reporting="0",
                ranks_silent="1,2",
                suspect="1",
                evidence_source="flight_recorder",
                suspect_reason="did not join all_reduce seq 118",
                **_DUMPS,
            ),
        ],
        "nccl_hang_lines": [
            *(
                hang_line_row(
                    name="b",
                    rank=rank,
                    printed_after_s=900.0 + rank,
                    line_no=950 + rank,
                    text=f"[rank{rank}]: Watchdog caught collective operation timeout",
                )
                for rank in (0, 1, 2, 4, 5, 6, 7)
            ),
            hang_line_row(
                "status",
                name="b",
                last_enqueued_seq=118,
                last_completed_seq=117,
                line_no=958,
                text="last enqueued NCCL work: 118, last completed NCCL work: 117",
            ),
        ],
        "flight_records": [
            *(
                flight_row("trace_rank_0", seq=seq, record_id=seq, line_no=seq - 114, **_DUMPS)
                for seq in range(115, 118)
            ),
            flight_row("trace_rank_0", seq=118, op_state="started", line_no=4, stack="train.py:88 step", **_DUMPS),
            flight_row("trace_rank_1", rank=1, seq=117, line_no=3, stack="data.py:5 next", **_DUMPS),
        ],
        "files": [file_row(path, unit="/logs/trace_rank_*") for path in dumps],
    }
