"""Writing a sweep: the same bytes for the same seed, the truth beside it, and nothing overwritten."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.simulate.marker import MARKER_NAME, TRUTH_NAME
from sweepscope.pipeline.simulate.sweep import write_sweep


def _contents(root: Path) -> Mapping[str, tuple[bytes, float | None]]:
    """Bytes and modification time of every file; the two files of the sweep itself have no time of their own."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), None if path.parent == root else path.stat().st_mtime)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_sweep(tmp_path / name, runs=24, seed=3) for name in "ab")
    assert _contents(first) == _contents(second)


def test_a_longer_sweep_keeps_the_files_of_the_shorter(tmp_path: Path) -> None:
    short = _contents(write_sweep(tmp_path / "short", runs=8, seed=3))
    long = _contents(write_sweep(tmp_path / "long", runs=16, seed=3))
    assert {name: long[name] for name in short if "/" in name} == {n: c for n, c in short.items() if "/" in n}


def test_truth_names_every_log_that_was_written(tmp_path: Path) -> None:
    root = write_sweep(tmp_path / "sweep", runs=16, seed=1)
    truths = [json.loads(line) for line in (root / TRUTH_NAME).read_text().splitlines()]
    assert len(truths) == 16
    for truth in truths:
        assert (root / truth["log"]).is_file()
        assert truth["steps_logged"] == len(truth["steps"]["step"])
        assert truth["log"].startswith(f"{truth['framework']}/{truth['sweep']}/")
    assert len([path for path in root.glob("*/*/*") if path.is_dir()]) == 16


def test_the_marker_says_how_to_make_it_again(tmp_path: Path) -> None:
    root = write_sweep(tmp_path / "sweep", runs=2, seed=9, frameworks=("picotron",))
    marker = json.loads((root / MARKER_NAME).read_text())
    assert marker["seed"] == 9
    assert marker["runs"] == 2
    assert marker["frameworks"] == ["picotron"]


def test_a_sweep_that_was_cut_short_is_marked_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_root: Path, _run: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("sweepscope.pipeline.simulate.sweep.write_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_sweep(tmp_path / "sweep", runs=2, seed=1)
    assert (tmp_path / "sweep" / MARKER_NAME).is_file()


def test_no_simulated_file_looks_as_if_it_were_being_written(tmp_path: Path) -> None:
    root = write_sweep(tmp_path / "sweep", runs=4, seed=1)
    times = [path.stat().st_mtime for path in root.glob("*/*/*/*")]
    assert max(times) < (root / MARKER_NAME).stat().st_mtime - 3600


def test_text_paths_are_accepted(tmp_path: Path) -> None:
    assert write_sweep(str(tmp_path / "sweep"), runs=1, seed=1) == tmp_path / "sweep"


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        write_sweep(tmp_path, runs=1, seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        write_sweep(path, runs=1, seed=1)


def test_unknown_framework_and_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="jaxformer"):
        write_sweep(tmp_path / "a", runs=1, seed=1, frameworks=("jaxformer",))
    with pytest.raises(UsageError, match="at least 1"):
        write_sweep(tmp_path / "b", runs=0, seed=1)
    assert list(tmp_path.iterdir()) == []
