"""Dumps of torch 2.2 (format 1.1, no list of groups) and 2.3 (1.4, which lists their ranks as numbers)."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.nccl.flight_recorder.dump import records
from sweepscope.pipeline.nccl.flight_recorder.hangs import flight_hangs


def early(number: int, seq: int, op: str = "all_reduce", state: str = "completed") -> dict[str, Any]:
    """One record as torch 2.2 and 2.3 have it: the group is a number that each process counts for itself."""
    return {
        "pg_id": number,
        "seq_id": seq,
        "profiling_name": f"nccl:{op}",
        "time_created_ns": 10**18 + seq,
        "input_sizes": [[8]],
        "output_sizes": [[8]],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "frames": [],
    }


def judged_early(by_rank: Mapping[int, list[dict[str, Any]]], config: Mapping[int, Any]) -> list[dict[str, Any]]:
    frames = []
    for rank, entries in by_rank.items():
        found = (
            {"version": "1.4", "entries": entries, "pg_config": config[rank]}
            if config
            else {
                "version": "1.1",
                "entries": entries,
            }
        )
        frame = records(pickle.dumps(found, protocol=2), rank=rank)[0]
        frames.append(frame.with_columns(source=pl.lit(rank, pl.Int64)))
    return flight_hangs(pl.concat(frames))


def test_numbers_of_groups_differ_between_processes() -> None:
    config = {0: {0: [0, 1, 2], 1: [0, 1], 2: [0, 2]}, 1: {0: [0, 1, 2], 1: [0, 1]}, 2: {0: [0, 1, 2], 1: [0, 2]}}
    by_rank = {
        0: [early(0, 1), early(1, 1), early(2, 1, state="scheduled")],
        1: [early(0, 1), early(1, 1)],
        2: [early(0, 1)],
    }
    (row,) = judged_early(by_rank, config)
    assert (row["process_group"], row["suspect"], row["num_ranks"]) == ("2", "2", 2)


def test_groups_without_ranks_are_not_compared() -> None:
    by_rank = {rank: [early(0, 1), early(1, 1 + rank, state="scheduled")] for rank in range(3)}
    assert judged_early(by_rank, {}) == []


def test_the_default_group_is_the_first() -> None:
    by_rank = {rank: [early(0, 1), *([early(0, 2, state="scheduled")] if rank != 1 else [])] for rank in range(3)}
    (row,) = judged_early(by_rank, {})
    assert (row["process_group"], row["suspect"], row["seq"]) == ("0", "1", 2)


def test_sends_count_as_collectives_so_that_numbers_say_nothing() -> None:
    by_rank = {
        0: [early(0, 1), early(0, 2, "send 0->1"), early(0, 3, state="scheduled")],
        1: [early(0, 1)],
        2: [early(0, 1), early(0, 2, state="scheduled")],
    }
    assert judged_early(by_rank, {}) == []
