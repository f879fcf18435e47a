"""Files that NCCL's Inspector itself wrote (tests/trackers/record_inspector.py), beside what its exporter reads in them."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.pipeline.ingest_in_memory import batch_of

RECORDED = Path(__file__).parents[2] / "trackers" / "inspector"
NAMES = [path.stem for path in sorted(RECORDED.glob("*.json"))]

Calls = dict[tuple[Any, ...], list[tuple[float, float | None]]]
"""Times in seconds and bus bandwidths in bytes per second, by what tells rows apart."""


def test_there_are_five_files() -> None:
    assert len(NAMES) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_exporter(name: str) -> None:
    own = json.loads((RECORDED / f"{name}.json").read_text())
    batch = batch_of({"run/node-3-pid1.log": gzip.decompress((RECORDED / f"{name}.log.gz").read_bytes())})
    rows = batch.other["nccl_inspector"].to_dicts()
    collectives = _collectives(own["collectives"])
    found = {_key(row): row for row in rows if row["peer"] is None}
    assert found.keys() == collectives.keys()
    for key, calls in collectives.items():
        _assert_adds_up(found[key], calls)
    transfers = _transfers(own["transfers"])
    sent = {(row["op"], row["rank"], row["peer"], row["message_bytes"]): row for row in rows if row["peer"] is not None}
    assert sent.keys() == transfers.keys()
    for other, calls in transfers.items():
        _assert_adds_up(sent[other], calls)
    assert batch.rejects.is_empty()
    assert rows


def _assert_adds_up(row: dict[str, Any], calls: list[tuple[float, float | None]]) -> None:
    times, speeds = [time for time, _ in calls], [speed for _, speed in calls if speed is not None]
    assert row["calls"] == len(calls)
    assert row["call_time_s"] == pytest.approx(median(times))
    assert (row["fastest_call_s"], row["slowest_call_s"]) == (pytest.approx(min(times)), pytest.approx(max(times)))
    if speeds:
        assert row["call_busbw_bytes_per_s"] == pytest.approx(median(speeds))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("host", "comm_hash", "comm_name", "rank", "nranks", "num_nodes", "op", "message_bytes", "timing_source")
    return tuple(row[name] for name in names)


def _collectives(records: list[dict[str, Any]]) -> Calls:
    found: Calls = defaultdict(list)
    names = ("hostname", "id", "comm_name", "rank", "n_ranks", "nnodes", "coll")
    for record in records:
        known = {**record, "comm_name": None if record["comm_name"] == "unknown" else record["comm_name"]}
        key = (*(known[name] for name in names), record["coll_msg_size_bytes"], record["coll_timing_source"])
        found[key].append((record["coll_exec_time_us"] / 1e6, record["coll_busbw_gbs"] * 1e9))
    return found


def _transfers(records: list[dict[str, Any]]) -> Calls:
    """Sends as they were handed to the plugin; their bandwidth is the plugin's own to compute."""
    found: Calls = defaultdict(list)
    for record in records:
        key = (record["op"], record["rank"], record["peer"], record["message_bytes"])
        found[key].append((record["time_us"] / 1e6, None))
    return found
