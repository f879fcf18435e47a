"""Allocator statistics as PyTorch dumps and prints them."""

from __future__ import annotations

import json

import pytest

from sweepscope.pipeline.memory.profiler.allocator_stats import (
    is_statistics,
    is_summary,
    read_statistics,
    read_summaries,
)

STATS = {
    "active_bytes.all.current": 3_000,
    "active_bytes.large_pool.current": 9,
    "allocated_bytes.all.current": 2_000,
    "allocated_bytes.all.peak": 5_000,
    "allocated_bytes.all.allocated": 99_999,
    "inactive_split.all.current": 2,
    "inactive_split_bytes.all.current": 700,
    "max_split_size": -1,
    "num_alloc_retries": 4,
    "num_ooms": 1,
    "requested_bytes.all.current": 2_900,
    "requested_bytes.all.peak": 4_800,
    "reserved_bytes.all.current": 8_000,
    "reserved_bytes.all.peak": 9_000,
    "segment.all.current": 3,
    "segment.all.peak": 7,
}
EXPECTED = {
    "device": None,
    "mem_source": "memory_stats",
    "segments": 3,
    "reserved_bytes": 8_000,
    "allocated_bytes": 2_000,
    "active_bytes": 3_000,
    "requested_bytes": 2_900,
    "inactive_split_bytes": 700,
    "inactive_split_blocks": 2,
    "peak_reserved_bytes": 9_000,
    "peak_allocated_bytes": 5_000,
    "peak_requested_active_bytes": 4_800,
    "oom_events": 1,
    "alloc_retries": 4,
    "fragmentation": 3.0,
}
SUMMARY = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID {device}                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 2            |        cudaMalloc retries: 4         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   {used} MiB |  77406 MiB | 774067 MiB | 699789 MiB |
|       from large pool |  61922 MiB |  77327 MiB | 1314574 MiB | 1252651 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |  30087 {unit} |  36956 {unit} |    938 GiB |    908 GiB |
|---------------------------------------------------------------------------|
| Non-releasable memory |  98 KiB    | 110348 KiB |   1939 GiB |   1847 GiB |
|---------------------------------------------------------------------------|
| GPU reserved segments |     829 K  |     829 K  |    4146 K  |    3450 K  |
|===========================================================================|
"""


def as_printed(values: dict[str, int]) -> str:
    return "OrderedDict([" + ", ".join(f"({name!r}, {value})" for name, value in values.items()) + "])"


@pytest.mark.parametrize("text", [json.dumps(STATS), json.dumps(STATS, indent=1), str(STATS), as_printed(STATS)])
def test_statistics_as_json_and_as_python_prints_them(text: str) -> None:
    assert is_statistics(text)
    assert read_statistics(text) == [EXPECTED]


def test_statistics_nested() -> None:
    nested: dict[str, object] = {}
    for name, value in STATS.items():
        *outer, last = name.split(".")
        at = nested
        for part in outer:
            at = at.setdefault(part, {})  # type: ignore[assignment]
        at[last] = value
    assert read_statistics(json.dumps(nested)) == [EXPECTED]


def test_statistics_of_every_device_and_of_several_times() -> None:
    text = json.dumps({"cuda:0": STATS, "cuda:3": {**STATS, "allocated_bytes.all.current": 7}})
    assert is_statistics(text)
    assert [(row["device"], row["allocated_bytes"]) for row in read_statistics(text)] == [
        (0, EXPECTED["allocated_bytes"]),
        (3, 7),
    ]
    (row,) = read_statistics(f"{json.dumps(STATS)}\n{json.dumps({**STATS, 'num_ooms': 9})}\n")
    assert (row["oom_events"], row["warnings"]) == (9, "the last of 2 records")


def test_statistics_of_a_back_end_that_counts_no_retries() -> None:
    stats = {name: value for name, value in STATS.items() if not name.startswith("num_")}
    assert is_statistics(json.dumps(stats))
    (row,) = read_statistics(json.dumps(stats))
    assert row["peak_allocated_bytes"] == EXPECTED["peak_allocated_bytes"]
    assert "alloc_retries" not in row


def test_statistics_of_a_process_without_cuda() -> None:
    with pytest.raises(ValueError, match="allocated_bytes is missing"):
        read_statistics("{}")


def test_a_summary_of_each_release() -> None:
    new = SUMMARY.format(device=1, used=100, unit="MiB")
    old = SUMMARY.format(device=1, used=100, unit="MB")
    assert is_summary(new)
    assert read_summaries(new) == read_summaries(old)
    (row,) = read_summaries(new)
    assert row["device"] == 1
    assert (row["allocated_bytes"], row["peak_allocated_bytes"]) == (100 << 20, 77_406 << 20)
    assert (row["reserved_bytes"], row["inactive_split_bytes"]) == (30_087 << 20, 98 << 10)
    assert (row["segments"], row["oom_events"], row["alloc_retries"]) == (829_000, 2, 4)
    assert "active_bytes" not in row


def test_a_summary_of_another_back_end_and_behind_a_prefix() -> None:
    text = SUMMARY.format(device=0, used=100, unit="MiB")
    npu = text.replace("CUDA memory", "NPU memory").replace("CUDA OOMs", "NPU OOMs").replace("GPU res", "NPU res")
    npu = npu.replace("cudaMalloc", "npuMalloc")
    assert is_summary(npu)
    assert read_summaries(npu) == read_summaries(text)
    assert read_summaries("".join(f"[rank2]: {line}\n" for line in text.splitlines())) == read_summaries(text)


def test_of_several_summaries_the_last_of_each_device_stands() -> None:
    text = "".join(SUMMARY.format(device=d, used=u, unit="MiB") for d, u in ((0, 1), (1, 2), (0, 3)))
    rows = {row["device"]: row for row in read_summaries("epoch 1\n" + text)}
    assert {device: row["allocated_bytes"] >> 20 for device, row in rows.items()} == {0: 3, 1: 2}
    assert rows[0]["warnings"] == "rounded down as printed; the last of 2 summaries"


def test_a_summary_that_is_cut_off() -> None:
    with pytest.raises(ValueError, match="without its table"):
        read_summaries(SUMMARY.format(device=0, used=1, unit="MiB")[:400])
