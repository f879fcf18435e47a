"""Archives: every format, what hostile ones state, and what is kept of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from sweepscope.pipeline.errors import UnreadableError
from sweepscope.pipeline.io import archives
from sweepscope.pipeline.io.files import exists, modified_at
from sweepscope.pipeline.io.reader import Reader
from sweepscope.schemas import limits

FILES = {"tp2/train.log": b"step 1\n" * 1_000, "tp4/train.log": b"", "tp4/config.yaml": b"tp: 4\n"}


def tar_of(files: dict[str, bytes], *, mtime: int = 1_700_000_000) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), mtime
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/sweepscope/archives"


def written(tmp_path: Path, data: bytes, name: str = "sweep.tar.gz") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def read(path: str) -> bytes:
    return b"".join(Reader(path).chunks())


PACK: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("pack", PACK)
def test_members_of_a_tar_read_as_files(tmp_path: Path, pack: str) -> None:
    path = written(tmp_path, PACK[pack](tar_of(FILES)))
    found = archives.contents(path)
    assert {(member.name, member.bytes, member.mtime) for member in found.members} == {
        (name, len(data), 1_700_000_000) for name, data in FILES.items()
    }
    assert not found.notes
    assert {name: read(f"{path}/{name}") for name in FILES} == FILES


def test_members_of_a_zip_read_as_files(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(FILES), "logs.zip")
    assert {name: read(f"{path}/{name}") for name in FILES} == FILES


def test_a_zip_of_windows_has_folders(tmp_path: Path) -> None:
    data = zip_of({"tp2/train.log": b"step 1\n"}).replace(b"tp2/train.log", b"tp2\\train.log")
    path = written(tmp_path, data, "logs.zip")
    assert read(f"{path}/tp2/train.log") == b"step 1\n"


def test_paths_in_archives_exist_while_the_archive_has_them(tmp_path: Path) -> None:
    path = written(tmp_path, tar_of(FILES), "sweep.tar")
    assert exists(f"{path}/tp2/train.log")
    assert modified_at(f"{path}/tp2/train.log") == 1_700_000_000
    assert not exists(f"{path}/tp8/train.log")
    assert modified_at(f"{path}/tp8/train.log") is None
    with pytest.raises(UnreadableError, match="No such file in the archive"):
        read(f"{path}/tp8/train.log")
    os.remove(path)
    assert not exists(f"{path}/tp2/train.log")


def test_reading_goes_on_in_the_middle_of_a_member(tmp_path: Path) -> None:
    path = f"{written(tmp_path, zip_of(FILES), 'logs.zip')}/tp2/train.log"
    first = Reader(path, size=700)
    assert b"".join(first.chunks()) == FILES["tp2/train.log"][:700]
    point = first.resume_point(700)
    second = Reader(path)
    assert point is not None
    assert second.resume(point)
    assert b"".join(second.chunks()) == FILES["tp2/train.log"][700:]


def test_names_that_lead_out_and_links_are_left_out_and_counted(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("../up.log", "a/../../up.log", "/etc/absolute.log", ".git/config", "./a/train.log"):
            archive.addfile(tarfile.TarInfo(name))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo(f"link{kind!r}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    found = archives.contents(written(tmp_path, gzip.compress(out.getvalue())))
    assert [member.name for member in found.members] == ["etc/absolute.log", "a/train.log"]
    assert found.notes == (
        "left out: files whose name leads out of the archive or is none (2), links, devices and files with holes (3)",
    )


def test_of_two_members_with_one_name_the_later_counts(tmp_path: Path) -> None:
    data = tar_of({"a.log": b"old"})[:1024] + tar_of({"a.log": b"new"})
    path = written(tmp_path, data, "a.tar")
    assert read(f"{path}/a.log") == b"new"


@pytest.mark.parametrize("pack", PACK)
def test_a_cut_archive_gives_what_is_before_the_cut(tmp_path: Path, pack: str) -> None:
    noise = {f"{number}.log": os.urandom(300_000) for number in range(3)}
    data = PACK[pack](tar_of(noise))
    path = written(tmp_path, data[: len(data) - 200_000])
    found = archives.contents(path)
    (note,) = found.notes
    assert "Unpack it beside" in note
    whole = [member.name for member in found.members if member.bytes == 300_000]
    if pack != "bzip2":  # which gives whole blocks of 900 kB only
        assert whole == ["0.log", "1.log"]
        assert read(f"{path}/1.log") == noise["1.log"]


def test_what_unpacks_too_far_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNPACKED_FREE_BYTES", 8 << 20)
    bomb = gzip.compress(tar_of({"a.log": b"small", "b.log": bytes(50 << 20)}))
    found = archives.contents(written(tmp_path, bomb))
    assert found.members[0].name == "a.log"
    assert "100 times its size" in found.notes[0]
    zipped = archives.contents(written(tmp_path, zip_of({"b.log": bytes(50 << 20)}), "b.zip"))
    assert not zipped.members
    assert "100 times its size" in zipped.notes[0]


def test_an_archive_of_too_many_files_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_FILES", 2)
    for name, data in (("a.tar", tar_of(FILES)), ("a.zip", zip_of(FILES))):
        found = archives.contents(written(tmp_path, data, name))
        assert len(found.members) == 2
        assert "more than 2 files" in found.notes[0]


def test_a_header_that_asks_for_all_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    found = archives.contents(written(tmp_path, info.tobuf(tarfile.GNU_FORMAT) + bytes(4096), "a.tar"))
    assert not found.members
    assert "a header of" in found.notes[0]


@pytest.mark.parametrize(
    "data", [b"", b"no archive", b"PK\3\4 no zip", b"\x1f\x8b no gzip", b"BZh9 no", b"\xfd7zXZ\0 no"]
)
def test_what_is_no_archive_says_so(tmp_path: Path, data: bytes) -> None:
    found = archives.contents(written(tmp_path, data))
    assert not found.members
    assert found.notes


def test_a_locked_zip_names_its_lock(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.log": b"step 1\n"}))
    data[6] |= 1  # of the local header
    data[data.index(b"PK\1\2") + 8] |= 1
    found = archives.contents(written(tmp_path, bytes(data), "a.zip"))
    assert found.notes == ("left out: files that are locked with a password (1)",)


def test_large_weights_are_listed_and_not_unpacked(tmp_path: Path, own_cache: Path) -> None:
    weights = os.urandom(3 << 20)
    path = written(tmp_path, gzip.compress(tar_of({"model.safetensors": weights, "train.log": b"step 1\n"})))
    assert [member.bytes for member in archives.contents(path).members] == [3 << 20, 7]
    assert sum(file.stat().st_size for file in own_cache.iterdir()) < 2_000
    with pytest.raises(UnreadableError, match="not unpacked"):
        read(f"{path}/model.safetensors")


def test_what_was_unpacked_is_kept_and_unpacked_again_once_gone(tmp_path: Path, own_cache: Path) -> None:
    path = written(tmp_path, gzip.compress(tar_of(FILES)))
    assert read(f"{path}/tp2/train.log") == FILES["tp2/train.log"]
    assert sorted(file.suffix for file in own_cache.iterdir()) == [".data", ".json"]
    shutil.rmtree(own_cache)
    assert read(f"{path}/tp2/train.log") == FILES["tp2/train.log"]


def test_the_cache_keeps_within_its_bytes(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_CACHE_BYTES", 10_000)
    for number in range(4):
        path = written(tmp_path, gzip.compress(tar_of(FILES)), f"{number}.tar.gz")
        archives.contents(path)
        for file in own_cache.iterdir():
            os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 60))
    assert len(list(own_cache.glob("*.data"))) == 1
    assert read(f"{path}/tp2/train.log") == FILES["tp2/train.log"]


def test_a_cache_that_cannot_be_written_is_the_reason(tmp_path: Path, own_cache: Path) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("no folder")
    found = archives.contents(written(tmp_path, gzip.compress(tar_of(FILES))))
    assert found.notes[0].startswith("cannot be unpacked:")
