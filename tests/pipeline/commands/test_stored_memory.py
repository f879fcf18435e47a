"""`sweepscope memory` without a file: a run from its estimate to the card, and what the store's memory shows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.commands.stored_memory import file_verdict
from tests.picotron_runs import picotron_run
from tests.pipeline.commands.calls import assert_one_line_error, called
from tests.pipeline.memory.allocator import Allocator, OutOfMemory

GIB, MIB = 1 << 30, 1 << 20
TAIL = (
    "[default0]:[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 79.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory "
    "in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but "
    "unallocated.\n"
)


def failed_in_pieces() -> Allocator:
    """A GPU of 64 MiB with 33 MiB free in pieces of 3 MiB, on which 12 MiB cannot be had."""
    allocator = Allocator(capacity=64 * MIB)
    held = [allocator.alloc(3 * MIB) for _ in range(18)]
    for block in held[::2]:
        allocator.free(block)
    with pytest.raises(OutOfMemory):
        allocator.alloc(12 * MIB)
    return allocator


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run whose log tells of its failure, and one whose directory holds a snapshot of it."""
    base = tmp_path_factory.mktemp("memory")
    picotron_run(base / "sweep", dp=8, status="oom", steps=1, tail=TAIL, name="told")
    run = picotron_run(
        base / "sweep", dp=4, status="oom", steps=1, name="dumped", tail="[rank0]: CUDA out of memory.\n"
    )
    (run / "rank0_oom.pickle").write_bytes(pickle.dumps(failed_in_pieces().snapshot()))
    assert main(["ingest", str(base / "sweep"), "--no-published", "--home", str(base / "home")]) == 0
    return base / "home"


def asked(home: Path, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["memory", "--home", str(home), *args]) == 0
    return capsys.readouterr().out


def run_ids(home: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Run id by what the verdict rests on."""
    assert main(["query", "SELECT verdict_basis, run_id FROM memory_fit", "--home", str(home), "--json"]) == 0
    return {row["verdict_basis"]: row["run_id"] for row in json.loads(capsys.readouterr().out)}


def test_a_run_goes_from_its_peak_to_the_card(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = run_ids(filled, capsys)["oom_report"]
    said = asked(filled, capsys, "--run", run_id)
    for part in (
        "70.00 GiB  measured peak of allocated bytes",
        "5.00 GiB  + reserved by the allocator",
        "3.00 GiB  + context, NCCL",
        "79.00 GiB  memory of the card",
        "would fit with expandable_segments",
        "asked for 2.00 GiB, 1.00 GiB more than the GPU had free",
    ):
        assert part in said
    told = json.loads(asked(filled, capsys, "--run", run_id, "--json"))
    assert told["fit"]["oom_inactive_bytes"] == 5 * GIB
    assert [part["part"] for part in told["parts"] if part["part_kind"] == "level"][-1] == "card"


def test_a_snapshot_beside_the_log_stands_for_its_run(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(asked(filled, capsys, "--run", run_ids(filled, capsys)["snapshot"], "--json"))
    assert told["run"]["snapshot_path"].endswith("dumped/rank0_oom.pickle")
    assert (told["fit"]["oom_missing_bytes"], told["fit"]["oom_inactive_bytes"]) == (8 * MIB, 33 * MIB)


def test_the_store_as_a_whole_and_one_sweep(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args in ((), ("--sweep", "sweep")):
        said = asked(filled, capsys, *args)
        assert "no run logs both" in said
        assert said.count("would fit with expandable_segments") == 2


def test_a_file_is_judged_as_the_store_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "oom.pickle"
    path.write_bytes(pickle.dumps(failed_in_pieces().snapshot()))
    assert main(["memory", str(path), "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["files"][0]["devices"]
    assert device["verdict"]["mem_verdict"] == "expandable_segments"
    assert (
        "12.0 MiB, 8.0 MiB more than the GPU had free; 33.0 MiB were free inside"
        in device["verdict"]["verdict_evidence"]
    )
    assert main(["memory", str(path)]) == 0
    assert "would fit with expandable_segments" in capsys.readouterr().out


def test_activations_that_are_large_enough_ask_for_recompute() -> None:
    row = {
        "oom_events": 1,
        "oom_requested_bytes": GIB,
        "oom_device_free_bytes": 0,
        "oom_inactive_bytes": 0,
        "oom_requested_active_bytes": 8 * GIB,
        "is_expandable": None,
    }
    groups = [{"category": "activations", "bytes": 4 * GIB}, {"category": "parameters", "bytes": 4 * GIB}]
    assert (file_verdict(row, groups) or {})["mem_verdict"] == "recompute"
    assert (file_verdict(row, groups[1:]) or {})["mem_verdict"] == "unknown"
    assert file_verdict({**row, "oom_events": 0}, groups) is None


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (("--run", "nope"), ("no run nope",)),
        (("--sweep", "nope"), ("no sweep nope",)),
        (("--run", "a", "--sweep", "b"), ("--run and --sweep",)),
        (("--device", "0"), ("give a FILE",)),
        (("x.pickle", "--run", "a"), ("without a FILE",)),
    ],
)
def test_wrong_questions_are_told_in_one_line(filled: Path, args: tuple[str, ...], parts: tuple[str, ...]) -> None:
    assert_one_line_error(called("memory", *args, home=filled), *parts, code=2)
