"""A line of a log is shown from its file: the right one, within bounds, without secrets, and of no other file."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import InputError, LimitError
from sweepscope.pipeline.inspection import log_window
from sweepscope.pipeline.inspection.log_window import Known, read_window
from sweepscope.pipeline.io.reader import Reader
from sweepscope.schemas import limits

LINES = [f"step {number}" for number in range(1, 501)]


def known(path: Path) -> Known:
    """The file as an ingest notes it."""
    reader = Reader(str(path))
    for _ in reader.chunks():
        pass
    content, stat = reader.content, path.stat()
    assert content is not None
    return Known(str(path), stat.st_size, stat.st_mtime, content.size, content.digest)


def written(path: Path, lines: list[str] = LINES) -> Path:
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["train.out", "train.out.gz"])
@pytest.mark.parametrize(("line_no", "first", "last"), [(1, 1, 4), (250, 247, 253), (499, 496, 500), (500, 497, 500)])
def test_lines_have_their_own_numbers(tmp_path: Path, name: str, line_no: int, first: int, last: int) -> None:
    window = read_window(known(written(tmp_path / name)), line_no, around=3)
    assert window.first == first
    assert list(window.lines) == LINES[first - 1 : last]
    assert window.has_more == (last < 500)


def test_numbers_are_those_of_the_ingest_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "powershell.log"
    path.write_bytes("\n".join(LINES).encode("utf-16"))
    assert read_window(known(path), 77, around=0).lines == ("step 77",)


def test_a_window_is_bounded_however_much_is_asked_for(tmp_path: Path) -> None:
    window = read_window(known(written(tmp_path / "a.log")), 250, around=10**9)
    assert len(window.lines) == 2 * log_window.MOST_AROUND + 1
    wide = read_window(known(written(tmp_path / "b.log", ["x" * 100_000, "end"])), 1, around=1)
    assert len(wide.lines[0]) == 2_000


def test_secrets_colours_and_control_characters_are_left_out(tmp_path: Path) -> None:
    token = "hf_" + "aB3" * 12
    path = written(tmp_path / "a.log", [f"\x1b[31mHF_TOKEN={token}\x1b[0m", "a\x07\x00b"])
    first, second = read_window(known(path), 1, around=1).lines
    assert token not in first
    assert "hidden: Hugging Face token" in first
    assert "\x1b" not in first
    assert second == "ab"


def test_a_file_that_grew_is_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log")
    before = known(path)
    with path.open("a") as file:
        file.write("step 501\n")
    assert read_window(before, 501, around=0).lines == ("step 501",)


@pytest.mark.parametrize("name", ["train.out", "train.out.gz"])
def test_a_file_with_other_content_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name)
    before = known(path)
    written(path, ["root:x:0:0"] * 600)
    with pytest.raises(InputError, match="has changed since it was read"):
        read_window(before, 3)


def test_a_link_that_leads_elsewhere_now_is_refused(tmp_path: Path) -> None:
    path, other = written(tmp_path / "a.log"), written(tmp_path / "private", ["secret"] * 900)
    before = known(path)
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(InputError, match="has changed"):
        read_window(before, 3)


def test_without_a_digest_size_and_time_must_be_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log")
    stat = path.stat()
    assert read_window(Known(str(path), stat.st_size, stat.st_mtime), 5, around=0).lines == ("step 5",)
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match="has changed"):
        read_window(Known(str(path), stat.st_size, stat.st_mtime), 5)


def test_what_cannot_be_shown_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.log")
    before = known(path)
    with pytest.raises(InputError, match="has no line 900"):
        read_window(before, 900)
    monkeypatch.setattr(limits, "LOG_WINDOW_BYTES", 10)
    with pytest.raises(LimitError, match="sed -n"):
        read_window(before, 499, around=1)
    path.unlink()
    with pytest.raises(InputError, match="is gone"):
        read_window(before, 3)
    with pytest.raises(InputError, match="behind a URL"):
        read_window(Known("s3://bucket/train.out"), 3)
    with pytest.raises(InputError, match="is no file of this machine"):
        read_window(Known("data/published/frontier.csv"), 3)
    with pytest.raises(InputError, match="is no file of this machine"):
        read_window(Known(str(tmp_path)), 3)


def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch()
    with pytest.raises(InputError, match="has no line 1"):
        read_window(Known(str(path), 0, path.stat().st_mtime), 1)
