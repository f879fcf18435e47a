"""Release files: numbered, whole, never overwritten."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store.release import Release

_NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_reads_back_what_was_written(tmp_path: Path) -> None:
    written = Release(7, {"runs": 3, "steps": 12}, _NOW, ("b1", "b2"))
    releases.write(tmp_path / "releases", written)
    assert releases.latest(tmp_path / "releases") == written


def test_there_is_none_at_first(tmp_path: Path) -> None:
    assert releases.latest(tmp_path) is None
    assert releases.latest(tmp_path / "missing") is None


def test_numbers_count_as_numbers(tmp_path: Path) -> None:
    for number in (2, 999_999, 1_000_000):
        releases.write(tmp_path, Release(number, {}, _NOW))
    assert releases.numbers(tmp_path) == [2, 999_999, 1_000_000]
    assert [release.number for release in releases.kept(tmp_path)] == [2, 999_999, 1_000_000]


def test_a_number_is_taken_once(tmp_path: Path) -> None:
    releases.write(tmp_path, Release(1, {"runs": 1}, _NOW))
    with pytest.raises(FileExistsError):
        releases.write(tmp_path, Release(1, {"runs": 2}, _NOW))
    assert releases.load(tmp_path, 1).versions == {"runs": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["000001.json"]


def test_a_leftover_of_a_killed_writer_is_not_a_release(tmp_path: Path) -> None:
    (tmp_path / ".000001.json.123").write_text('{"num')
    assert releases.latest(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"number": 1}'])
def test_says_which_file_is_damaged_and_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "000001.json").write_text(text)
    with pytest.raises(StoreError, match=r"000001\.json cannot be read .* Move it away to go back"):
        releases.latest(tmp_path)
