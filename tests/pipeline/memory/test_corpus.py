"""Real and hostile memory files, when a corpus of them is at hand; and PyTorch's own totals, where it is installed.

`SWEEPSCOPE_MEMORY_CORPUS` names a folder with `manifest.csv` (one row per file; an empty field is a fact that the file
does not state). It is not part of the repository.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import re
from typing import Any

import pytest

from sweepscope.pipeline.io.safe_pickle import load
from sweepscope.pipeline.memory.analysis.analyse import analyse
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.containers import snapshot_chunks
from tests import paths

CORPUS = paths.CORPUS / "memory"
_TOTALS = {
    "segments": "n_segments",
    "blocks": "n_blocks",
    "reserved_bytes": "reserved_bytes",
    "allocated_bytes": "allocated_bytes",
    "active_bytes": "active_bytes",
    "requested_bytes": "requested_bytes",
    "inactive_split_bytes": "inactive_split_bytes",
    "inactive_split_blocks": "inactive_split_blocks",
    "oom_events": "oom_events",
}
_PEAKS = {
    "peak_requested_allocated_bytes": "peak_requested_allocated",
    "peak_requested_active_bytes": "peak_requested_active",
    "peak_reserved_bytes": "peak_reserved",
}


def facts(kind: str) -> list[dict[str, str]]:
    if not (CORPUS / "manifest.csv").exists():
        return []
    with (CORPUS / "manifest.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    if kind == "hostile":
        return [row for row in rows if row["kind"] == "hostile"]
    return [row for row in rows if row["n_segments"]]


def parametrize(kind: str) -> pytest.MarkDecorator:
    rows = facts(kind)
    missing = pytest.mark.skip(reason=paths.NO_CORPUS)
    return pytest.mark.parametrize(
        "fact", rows or [pytest.param({}, marks=missing)], ids=[row["path"] for row in rows] or ["none"]
    )


def rows_of(fact: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    return analyse(snapshot_chunks([(CORPUS / fact["path"]).read_bytes()]))


@parametrize("snapshots")
def test_facts_of_the_manifest(fact: dict[str, str]) -> None:
    rows = rows_of(fact)
    snapshots = rows["memory_snapshots"]
    for column, name in _TOTALS.items():
        assert sum(row[column] for row in snapshots) == int(fact[name])
    for column, name in _PEAKS.items():
        for device, value in re.findall(r"(\d+):(\d+)", fact[name]):
            assert next(row for row in snapshots if row["device"] == int(device))[column] == int(value)
    for row in snapshots:
        groups = [group["bytes"] for group in rows["memory_at_peak"] if group["device"] == row["device"]]
        assert row["violations"] or sum(groups) == row["peak_requested_active_bytes"]


@parametrize("hostile")
def test_hostile_files_are_refused_and_awkward_ones_load(fact: dict[str, str]) -> None:
    if fact["notes"].startswith("refuse"):
        with pytest.raises(RefusedError):
            rows_of(fact)
    else:
        assert rows_of(fact)["memory_snapshots"]


def viewer() -> Any:
    """PyTorch's torch/cuda/_memory_viz.py: of the installed torch, or the file that SWEEPSCOPE_MEMORY_VIZ names.

    The file needs nothing of torch for its totals, so that it can be taken out of a wheel.
    """
    if path := os.environ.get("SWEEPSCOPE_MEMORY_VIZ"):
        spec = importlib.util.spec_from_file_location("_memory_viz", path)
        assert spec, path
        assert spec.loader, path
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed, nor does SWEEPSCOPE_MEMORY_VIZ name a _memory_viz.py: nothing to compare")
    return importlib.import_module("torch.cuda._memory_viz")


@parametrize("snapshots")
def test_pytorchs_own_totals(fact: dict[str, str]) -> None:
    memory_viz = viewer()
    if fact["kind"] in ("snapshot_nonconforming", "snapshot_legacy_history"):
        pytest.skip("its totals need keys that this file does not have")
    snapshot = load(snapshot_chunks([(CORPUS / fact["path"]).read_bytes()]))
    printed = memory_viz.segsum(snapshot)
    snapshots = rows_of(fact)["memory_snapshots"]
    found = re.search(r"total_reserved: +([\d.]+)(\w+)", printed)
    assert found, printed[-500:]
    unit = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[found[2]]
    assert sum(row["reserved_bytes"] for row in snapshots) == pytest.approx(float(found[1]) * unit, rel=0.06)
    # One line per block and, after it, what its user did not ask for; the inactive ones carry their last user's size.
    lines = memory_viz.memory(snapshot, lambda text: text).splitlines()
    live = [line for line in lines if ";active" in line and ";<gaps> " not in line]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in live) == sum(row["requested_bytes"] for row in snapshots)
