"""Samples of the device beside the runs of their directory, whatever the time zones of the two clocks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from sweepscope.schemas.tables.memory import GPU_SAMPLES
from tests.run_rows import Row, completed_frame, open_store, rows_of, run_row

START = datetime(2026, 1, 3, 15, 0)
GIB = 1 << 30


def sampled(begin: datetime, *, run_dir: str = "/runs/a", minutes: int = 60, **changes: Any) -> list[Row]:
    """A sample a minute, with as many GiB in use as minutes have gone by."""
    return [
        {
            "source_path": f"{run_dir}/gpu.csv",
            "line_no": at + 2,
            "run_dir": run_dir,
            "gpu_index": 0,
            "ts": begin + timedelta(minutes=at),
            "mem_used_bytes": at * GIB,
            "mem_total_bytes": 80 * GIB,
            "gpu_utilisation": 0.5,
            **changes,
        }
        for at in range(minutes)
    ]


def seen(samples: list[Row], **changes: Any) -> list[Row]:
    times = {"run_dir": "/runs/a", "started_at": START, "ended_at": START + timedelta(minutes=30)}
    connection = open_store(completed_frame(run_row(**{**times, "mem_peak_reserved_bytes": 20 * GIB, **changes})))
    frame = GPU_SAMPLES.conform(pl.DataFrame(samples))
    connection.register("rows", frame)
    connection.execute("INSERT INTO gpu_samples SELECT * FROM rows")
    return rows_of(connection, "SELECT * FROM run_gpu_memory ORDER BY gpu")


def test_samples_within_the_run_and_what_lies_outside_the_allocator() -> None:
    (row,) = seen(sampled(START - timedelta(minutes=10)))
    assert (row["clock_offset_s"], row["samples"], row["gpu"]) == (0, 31, "0")
    assert row["mem_used_max_bytes"] == 40 * GIB
    assert row["outside_allocator_bytes"] == 20 * GIB
    assert row["gpu_utilisation"] == 0.5


@pytest.mark.parametrize("hours", [-9, -0.5, 2, 5.5])
def test_clocks_in_different_zones_are_aligned(hours: float) -> None:
    (row,) = seen(
        sampled(START + timedelta(hours=hours, minutes=-3), minutes=20), ended_at=START + timedelta(minutes=25)
    )
    assert row["clock_offset_s"] == -3600 * hours
    assert row["samples"] == 17


def test_samples_of_another_day_belong_to_no_run() -> None:
    assert seen(sampled(START + timedelta(days=2))) == []


def test_samples_of_directories_below_count_and_those_beside_do_not() -> None:
    assert len(seen(sampled(START, run_dir="/runs/a/rank0"))) == 1
    assert seen(sampled(START, run_dir="/runs/ab")) == []


def test_each_gpu_of_each_host_is_a_row() -> None:
    samples = [
        row | {"line_no": 100 * at + row["line_no"]}
        for at, (host, uuid) in enumerate([("n1", "GPU-a"), ("n1", "GPU-b"), ("n2", None)])
        for row in sampled(START, host=host, gpu_uuid=uuid)
    ]
    assert [row["gpu"] for row in seen(samples)] == ["n1 GPU-a", "n1 GPU-b", "n2 0"]


def test_without_a_reserved_peak_the_difference_is_unknown() -> None:
    (row,) = seen(sampled(START), mem_peak_reserved_bytes=None)
    assert row["outside_allocator_bytes"] is None
