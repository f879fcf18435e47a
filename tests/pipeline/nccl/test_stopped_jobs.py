"""Whoever stops, and however ranks wait for it: dumps blame nobody else."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.nccl.flight_recorder.dump import records
from sweepscope.pipeline.nccl.flight_recorder.hangs import flight_hangs
from tests.pipeline.nccl.stopped_jobs import VERSIONS, Stopped, dumps, stopped_job
from tests.properties import draws

FORMATS = pytest.mark.parametrize("version", VERSIONS)


def judged(by_rank: dict[int, dict[str, Any]], *, as_json: bool = False) -> list[dict[str, Any]]:
    frames = [
        records(json.dumps(dump).encode() if as_json else pickle.dumps(dump, protocol=2), rank=rank)[0].with_columns(
            source=pl.lit(rank, pl.Int64)
        )
        for rank, dump in by_rank.items()
    ]
    return flight_hangs(pl.concat(frames))


def suspects(rows: list[dict[str, Any]]) -> set[int]:
    return {int(rank) for row in rows if row["suspect"] for rank in row["suspect"].split(",")}


@FORMATS
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=draws(25), deadline=None)
def test_nobody_else_is_blamed(
    version: tuple[int, int], seed: int, is_lost: bool, has_timing: bool, as_json: bool
) -> None:
    job = stopped_job(random.Random(seed))  # noqa: S311  # the same job every time
    found = dumps(job, version, has_timing=has_timing)
    if is_lost:
        del found[job.stopped]
    rows = judged(found, as_json=as_json and version >= (2, 0))
    assert suspects(rows) <= {job.stopped}
    if all(job.has_ended(one.place) for calls in job.entered.values() for one in calls):
        assert rows == []


@FORMATS
def test_along_a_chain_of_groups_it_is_found(version: tuple[int, int]) -> None:
    """0 waits for 1, which waits for 2, which waits for 3."""
    groups = [(0, 1, 2, 3), (0, 1), (1, 2), (2, 3)]
    program = [(0, "all_reduce", None), (3, "all_reduce", None), (2, "all_reduce", None), (1, "all_reduce", None)]
    job = Stopped(groups, [*program], stopped=3, after=1, is_blocking=True)
    job.run(random.Random(0))  # noqa: S311  # the same job every time
    rows = judged(dumps(job, version, has_timing=False))
    assert suspects(rows) == ({3} if version > (1, 1) else set())  # 1.1 does not tell who is in which group


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= (2, 0)])
@pytest.mark.parametrize("is_lost", [False, True])
def test_behind_a_receive_it_is_found(version: tuple[int, int], is_lost: bool) -> None:
    """A stage that has stopped sends nothing: the next one waits for it, and the others for that one."""
    program = [(0, "all_reduce", None), (1, "", (2, 1)), (2, "all_reduce", None)]
    job = Stopped([(0, 1, 2), (1, 2), (0, 1)], [*program], stopped=2, after=1, is_blocking=True)
    job.run(random.Random(0))  # noqa: S311  # the same job every time
    found = dumps(job, version, has_timing=False)
    if is_lost:
        del found[2]
    (row,) = judged(found)
    assert (row["process_group"], row["suspect"], row["ranks_elsewhere"]) == ("2(undefined)", "2", "1")
    assert row["suspect_reason"] == (
        "1 waits in recv 0<-1 of 1(undefined) and so did not join all_reduce seq 1, it has none; "
        f"1 of 2 ranks joined; 2, for which they wait, {'has no dump' if is_lost else 'waits in nothing'}"
    )
