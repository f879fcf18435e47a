"""Values that cannot be: validation sees and rejects them; points of a timeline are NULL, with a warning."""

from __future__ import annotations

import json
import pickle
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.memory.analysis.analyse import analyse
from sweepscope.pipeline.memory.sources import read_memory_file
from sweepscope.schemas.registry import TABLES

T = 1_700_000_000_000_000  # microseconds


def rejected_columns(name: str, data: str) -> dict[str, set[str]]:
    """Columns of the rejects, by table."""
    tables = read_memory_file(name, [data.encode()], {"run_dir": None, "sweep": None}).tables
    found = {}
    for table, frame in tables.items():
        rejects = validate(TABLES[table], frame).rejects
        assert rejects["reason"].str.contains("must be at least 0").all()
        if rejects.height:
            found[table] = set(rejects["column"].to_list())
    return found


def kineto(total: int, reserved: int) -> str:
    args = {"Device Type": 1, "Device Id": 0, "Bytes": 1, "Total Allocated": total, "Total Reserved": reserved}
    event = {"name": "[memory]", "ph": "i", "ts": T, "args": args}
    return json.dumps({"traceEvents": [event]})


STATISTICS = '{"allocated_bytes.all.current": %d, "reserved_bytes.all.current": %d, "num_alloc_retries": 0}'
SUMMARY = """\
| PyTorch CUDA memory summary, device ID 0 |
| CUDA OOMs: 0 | cudaMalloc retries: 0 |
| Allocated memory | -5 MiB | 7 MiB | 9 MiB | 9 MiB |
| GPU reserved memory | 8 MiB | 8 MiB | 8 MiB | 0 B |
"""

FILES: dict[str, tuple[str, str, dict[str, set[str]]]] = {
    "a trace with a negative level": (
        "trace.json",
        kineto(-1, 5),
        {
            "memory_snapshots": {"allocated_bytes", "peak_allocated_bytes"},
            "memory_timeline": {"allocated_bytes"},
        },
    ),
    "a trace with negative reserved bytes": (
        "trace.json",
        kineto(1, -5),
        {
            "memory_snapshots": {"reserved_bytes", "peak_reserved_bytes", "reserved_at_peak_bytes"},
            "memory_timeline": {"reserved_bytes"},
        },
    ),
    "a timeline that falls below 0": (
        "memory.json",
        json.dumps([[T], [[0, -7, 0, 0, 0, 0, 0, 0, 0]]]),
        {
            "memory_snapshots": {"allocated_bytes", "peak_allocated_bytes"},
            "memory_timeline": {"allocated_bytes"},
            "memory_at_peak": {"bytes"},
        },
    ),
    "negative statistics": ("memory_stats.json", STATISTICS % (-5, 8), {"memory_snapshots": {"allocated_bytes"}}),
    "a negative summary": ("memory_summary.txt", SUMMARY, {"memory_snapshots": {"allocated_bytes"}}),
    "negative samples": (
        "nvidia.csv",
        "index, pid, used_gpu_memory [MiB]\n-1, -2, -3\n",
        {"gpu_samples": {"gpu_index", "pid", "mem_process_bytes"}},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FILES)
def test_validation_rejects_what_a_file_states(what: str) -> None:
    name, data, expected = FILES[what]
    assert rejected_columns(name, data) == expected


def block(**changes: Any) -> dict[str, Any]:
    return {"address": 4096, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": []} | changes


def analysed(*events: dict[str, Any], **changes: Any) -> dict[str, Any]:
    segment = {"device": 0, "address": 4096, "total_size": 512, "stream": 0, "blocks": [block(**changes)]}
    trace = [{"stream": 0, "time_us": T, **event} for event in events]
    return analyse([pickle.dumps({"segments": [segment], "device_traces": [trace]})])  # type: ignore[return-value]


def test_fragmentation_of_impossible_values_is_unknown() -> None:
    for allocated, reserved in ((9, 8), (-9, 8)):
        tables = read_memory_file(
            "memory_stats.json", [(STATISTICS % (allocated, reserved)).encode()], {"run_dir": None, "sweep": None}
        ).tables
        assert tables["memory_snapshots"]["fragmentation"].to_list() == [None]


def test_a_level_below_0_is_unknown() -> None:
    rows = analysed({"action": "oom", "addr": 2**63, "size": 9}, {"action": "alloc", "addr": 1 << 30, "size": 1_000})
    (summary,) = rows["memory_snapshots"]
    assert (summary["oom_requested_active_bytes"], summary["oom_device_free_bytes"]) == (-488, None)
    assert "negative levels" in summary["warnings"]
    assert "1 free bytes beyond any device" in summary["warnings"]
    assert rows["memory_timeline"][0]["requested_active_bytes"] is None
    frame = pl.DataFrame([summary]).with_columns(source_path=pl.lit("a"))
    rejects = validate(TABLES["memory_snapshots"], TABLES["memory_snapshots"].conform(frame)).rejects
    assert {"oom_requested_active_bytes", "start_requested_active_bytes"} <= set(rejects["column"])


def test_a_block_smaller_than_requested_is_a_violation() -> None:
    (summary,) = analysed(requested_size=1_000)["memory_snapshots"]
    assert (summary["rounding_bytes"], summary["violations"]) == (-488, 2)
    assert "1 active above reserved; 1 blocks smaller than requested" in summary["warnings"]
