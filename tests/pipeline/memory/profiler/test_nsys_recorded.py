"""Reports that Nsight Systems itself wrote (tests/trackers/record_nsys.py): steps as long as `nsys stats` says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.pipeline.ingest_in_memory import batch_of

RECORDED = Path(__file__).parents[3] / "trackers" / "nsys"
NAMES = [path.stem for path in sorted(RECORDED.glob("*.json"))]
STEPS = {
    "lightning": {f"training:ProfilerStep#{step}": step for step in (10, 11, 12)},  # around `train_step: 10`
    "loop": {f"iteration {step}": step for step in range(5)},
    "no_steps": {},
    "overlapping": {f"global_step {step}": step for step in range(4)},  # the last one ends with the recording
    "processes": {f"step {step}": step for step in range(3)},
    "threads": {f"Training Iteration={step}": step for step in (100, 101, 102)},
}
"""The ranges that are steps, as `nsys stats` writes their names: behind their domain, if it is not the default one."""


def test_there_are_five_reports() -> None:
    assert len(NAMES) >= 5
    assert set(NAMES) == set(STEPS)


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_nsys_stats(name: str) -> None:
    own = json.loads((RECORDED / f"{name}.json").read_text())
    batch = batch_of({"run/report.sqlite": gzip.decompress((RECORDED / f"{name}.sqlite.gz").read_bytes())})
    ranges = [(one.get("pid"), STEPS[name].get(one["name"]), one["ns"]) for one in own["push_pop"] + own["start_end"]]
    wanted = [(pid, step, ns / 1e9) for pid, step, ns in ranges if step is not None]
    if not wanted:
        assert batch.files["status"].to_list() == ["skipped"]
        return
    found = batch.other["trace_steps"]
    knows_process = bool(own["push_pop"])  # its summary of ranges of start and end has none
    rows = [(row["pid"] if knows_process else None, row["step"], row["duration_s"]) for row in found.to_dicts()]
    assert sorted(rows, key=str) == [
        (pid, step, pytest.approx(duration, abs=2e-9)) for pid, step, duration in sorted(wanted, key=str)
    ]
    assert found["device_busy_s"].null_count() == found.height  # no GPU: unknown, not 0
