"""`sweepscope memory`: text for people, JSON for programs, one line for what cannot be read."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from tests.pipeline.commands.calls import assert_one_line_error, called
from tests.pipeline.memory.allocator import Allocator, train

SAMPLES = (
    "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n2026/01/03 15:36:53, 0, H100, 512 MiB, 1024 MiB\n"
)


def dumped(path: Path, *, layers: int) -> Path:
    allocator = Allocator()
    train(allocator, layers=layers)
    path.write_bytes(pickle.dumps(allocator.snapshot()))
    return path


def test_text_names_the_peak_its_uses_and_source_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", str(dumped(tmp_path / "a.pickle", layers=4)), "--top", "3"]) == 0
    said = capsys.readouterr().out
    for part in ("device 0", "requested and active", "rounding", "alive at the peak", "optimizer_state", "train.py"):
        assert part in said


def test_json_holds_the_same_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dumped(tmp_path / "a.pickle", layers=2)
    assert main(["memory", str(path), "--json", "--top", "2"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    (device,) = file["devices"]
    assert file["path"] == str(path)
    assert len(device["top"]) == 2
    assert sum(row["bytes"] for row in device["categories"]) == device["summary"]["peak_requested_active_bytes"]


def test_differences_are_ranked_by_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, large = dumped(tmp_path / "s.pickle", layers=1), dumped(tmp_path / "l.pickle", layers=3)
    assert main(["memory", str(large), "--against", str(small), "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["files"][0]["devices"]
    told = [row["difference_bytes"] for row in device["differences"]]
    assert told == sorted(told, key=abs, reverse=True)
    states = next(row for row in device["differences"] if row["category"] == "optimizer_state")
    assert states["difference_bytes"] == 2 * 24 * 4 * 256 * 256  # two more layers, two states of each matrix
    assert main(["memory", str(small), "--against", str(small)]) == 0
    assert "the same groups of blocks" in capsys.readouterr().out


def test_samples_of_a_device_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gpu.csv").write_text(SAMPLES)
    assert main(["memory", str(tmp_path / "gpu.csv")]) == 0
    assert "GPU 0 H100: 1 samples, 0.50 GiB to 0.50 GiB in use of 1.00 GiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "arguments", "code", "said"),
    [
        (("evil.pickle", b"\x80\x04cos\nsystem\n."), [], 1, "GLOBAL"),
        (("notes.txt", b"hello\n"), [], 1, "Give an allocator snapshot"),
        (("gpu.csv", SAMPLES.encode()), ["--top", "-1"], 2, "--top -1"),
        (("missing.pickle", None), [], 2, "No such file"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    file: tuple[str, bytes | None], arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    path, content = tmp_path / file[0], file[1]
    if content is not None:
        path.write_bytes(content)
    done = called("memory", path, *arguments)
    assert_one_line_error(done, said, code=code)


def test_a_device_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", str(dumped(tmp_path / "a.pickle", layers=1)), "--device", "3"]) == 2
    assert "has nothing about device 3" in capsys.readouterr().err


def test_a_trace_that_counts_failures_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = {"ph": "i", "name": "[OutOfMemory]", "ts": 1_700_000_000_000_000}
    told = {"Device Type": 1, "Device Id": 0, "Bytes": 9, "Total Allocated": 1 << 30, "Total Reserved": 2 << 30}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{**event, "args": told}]}))
    assert main(["memory", str(path)]) == 0
    assert "out of memory  1 failed allocation\n" in capsys.readouterr().out
