"""The landing zone: what is listed, and how files are read whatever wraps them."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import fsspec
import pytest
import zstandard

from sweepscope.pipeline.errors import InputError, SweepscopeError, UsageError
from sweepscope.pipeline.io import files, remote, stream
from sweepscope.pipeline.io.files import Reader, list_files, marker_above

LOG = b"".join(b"Step: %d | Loss: 7.0\n" % i for i in range(20_000))


def names(root: Path | str) -> list[str]:
    base = os.path.abspath(root)
    return sorted(os.path.relpath(entry.path, base) for entry in list_files(str(root)))


def read(path: Path) -> bytes:
    return b"".join(Reader(str(path)).chunks())


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@contextmanager
def private_directory(parent: Path) -> Iterator[None]:
    """`private`, which nobody may list, beside a log; root may list everything, so the system call is replaced."""
    (parent / "private").mkdir()
    (parent / "a.log").write_text("x")
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("private"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    with patch.object(files.os, "scandir", scandir):
        yield


class TestListing:
    def test_an_empty_directory_has_no_files(self, tmp_path: Path) -> None:
        assert names(tmp_path) == []

    def test_a_single_file_is_listed_with_its_size_and_time(self, tmp_path: Path) -> None:
        log = tmp_path / "a.log"
        log.write_bytes(b"12345")
        os.utime(log, (1_700_000_000.25, 1_700_000_000.25))
        (entry,) = list_files(str(log))
        assert (entry.path, entry.bytes, entry.mtime) == (str(log), 5, 1_700_000_000.25)

    def test_names_with_blanks_quotes_and_letters_of_any_script(self, tmp_path: Path) -> None:
        for name in ("a b.log", "it's.log", 'q".log', "größe.log", "損失.log", "100%.log"):
            (tmp_path / name).write_text("x")
        assert len(names(tmp_path)) == 6

    def test_hidden_files_and_directories_are_left_out(self, tmp_path: Path) -> None:
        for name in (".a.log", ".git/b.log", "c/.d/e.log", "f/g.log"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("x")
        assert names(tmp_path) == ["f/g.log"]

    def test_a_hidden_directory_that_is_asked_for_is_listed(self, tmp_path: Path) -> None:
        (tmp_path / ".scratch").mkdir()
        (tmp_path / ".scratch" / "a.log").write_text("x")
        assert names(tmp_path / ".scratch") == ["a.log"]

    def test_relative_paths_become_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "x").mkdir()
        (tmp_path / "a.log").write_text("x")
        monkeypatch.chdir(tmp_path / "x")
        assert [entry.path for entry in list_files("..")] == [str(tmp_path / "a.log")]

    def test_a_missing_path_is_wrong_usage(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"^No such file or directory: .*nowhere\. Give "):
            list(list_files(str(tmp_path / "nowhere")))

    def test_a_pipe_is_wrong_usage(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.log")
        with pytest.raises(UsageError, match="neither a file nor a directory"):
            list(list_files(str(tmp_path / "pipe.log")))
        assert names(tmp_path) == []

    def test_a_directory_that_cannot_be_listed_stands_for_its_files(self, tmp_path: Path) -> None:
        with private_directory(tmp_path):
            entries = {entry.path: entry.is_file for entry in list_files(str(tmp_path))}
        assert entries == {str(tmp_path / "a.log"): True, str(tmp_path / "private"): False}

    def test_a_root_that_cannot_be_listed_is_named(self, tmp_path: Path) -> None:
        with private_directory(tmp_path), pytest.raises(InputError, match="private: Permission denied"):
            list(list_files(str(tmp_path / "private")))

    def test_a_name_that_is_no_text_is_named(self, tmp_path: Path) -> None:
        path = os.fsencode(tmp_path) + b"/caf\xe9.log"
        try:
            with open(path, "wb"):
                pass
        except OSError:
            pytest.skip("this file system keeps UTF-8 names only")
        with pytest.raises(InputError, match="not UTF-8"):
            list(list_files(str(tmp_path)))


class TestLinks:
    def test_loops_end(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x.log").write_text("x")
        (tmp_path / "a" / "up").symlink_to(tmp_path)
        (tmp_path / "self").symlink_to(tmp_path / "self")
        assert names(tmp_path) == ["a/x.log"]

    def test_a_link_to_a_listed_file_is_not_listed_again(self, tmp_path: Path) -> None:
        (tmp_path / "run_1.log").write_text("x")
        (tmp_path / "latest.log").symlink_to("run_1.log")
        assert names(tmp_path) == ["run_1.log"]

    def test_links_that_lead_out_are_followed_once(self, tmp_path: Path) -> None:
        scratch, sweep = tmp_path / "scratch", tmp_path / "sweep"
        (scratch / "run").mkdir(parents=True)
        (scratch / "run" / "x.log").write_text("x")
        (scratch / "run" / "back").symlink_to(sweep)
        (scratch / "lone.log").write_text("x")
        sweep.mkdir()
        (sweep / "run").symlink_to(scratch / "run")
        (sweep / "run_again").symlink_to(scratch / "run")
        (sweep / "lone.log").symlink_to(scratch / "lone.log")
        assert names(sweep) == ["lone.log", "run/x.log"]

    def test_two_links_to_one_file_are_one(self, tmp_path: Path) -> None:
        scratch, sweep = tmp_path / "scratch", tmp_path / "sweep"
        (scratch / "run").mkdir(parents=True)
        (scratch / "run" / "x.log").write_text("x")
        sweep.mkdir()
        for name in ("a.log", "b.log"):
            (sweep / name).symlink_to(scratch / "run" / "x.log")
        (entry,) = list_files(str(sweep))
        assert (entry.path, entry.linked_path) == (str(sweep / "a.log"), str(scratch / "run" / "x.log"))

    def test_a_link_to_what_holds_a_followed_one_brings_the_rest(self, tmp_path: Path) -> None:
        scratch, sweep = tmp_path / "scratch", tmp_path / "sweep"
        for run in ("one", "two"):
            (scratch / run).mkdir(parents=True)
            (scratch / run / "x.log").write_text("x")
        sweep.mkdir()
        (sweep / "best").symlink_to(scratch / "one")
        (sweep / "rest").symlink_to(scratch)
        assert names(sweep) == ["best/x.log", "rest/two/x.log"]

    def test_a_link_into_a_hidden_directory_is_the_only_name(self, tmp_path: Path) -> None:
        (tmp_path / ".store").mkdir()
        (tmp_path / ".store" / "blob").write_text("x")
        (tmp_path / "a.log").symlink_to(".store/blob")
        assert names(tmp_path) == ["a.log"]

    def test_dangling_links_are_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").symlink_to("gone.log")
        assert names(tmp_path) == []

    def test_a_root_that_is_a_link_goes_by_the_name_of_its_target(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "a.log").write_text("x")
        (tmp_path / "link").symlink_to("real")
        assert [entry.path for entry in list_files(str(tmp_path / "link"))] == [str(tmp_path / "real" / "a.log")]


class TestUrls:
    def test_a_directory_and_a_file(self) -> None:
        store = fsspec.filesystem("memory")
        store.pipe({"/urls/run/log_1.out": b"abc", "/urls/run/.hidden": b"x", "/urls/.h/a.log": b"x"})
        found = list(list_files("memory://urls"))
        assert [(entry.path.split("urls", 1)[1], entry.bytes) for entry in found] == [("/run/log_1.out", 3)]
        (same,) = list_files(found[0].path)
        assert same.path == found[0].path
        assert b"".join(Reader(found[0].path).chunks()) == b"abc"

    @pytest.mark.parametrize("url", ["nosuch://bucket/x", "memory://nothing/here"])
    def test_what_cannot_be_is_wrong_usage(self, url: str) -> None:
        with pytest.raises(UsageError, match="Check the URL"):
            list(list_files(url))

    def test_a_protocol_whose_package_is_missing_is_named(self) -> None:
        missing = ImportError("Install s3fs to access S3")
        with (
            patch.object(remote.fsspec.core, "url_to_fs", side_effect=missing),
            pytest.raises(InputError, match="Install s3fs"),
        ):
            list(list_files("s3://bucket/x"))

    @pytest.mark.parametrize(
        ("info", "seconds"),
        [
            ({"mtime": 12.5}, 12.5),
            ({"LastModified": datetime(2026, 1, 1, tzinfo=UTC)}, 1767225600.0),
            ({"updated": "2026-01-01T00:00:00Z"}, 1767225600.0),
            ({"created": datetime(2026, 1, 1)}, 1767225600.0),
            ({}, 0.0),
            ({"mtime": None}, 0.0),
        ],
    )
    def test_every_stores_idea_of_a_time(self, info: dict[str, object], seconds: float) -> None:
        assert remote.modified(info) == seconds


class TestReading:
    @pytest.mark.parametrize("chunk", [1000, 8 << 20])
    def test_plain_gz_and_zst_read_the_same_and_hash_what_is_on_disk(self, tmp_path: Path, chunk: int) -> None:
        for name, data in {
            "a.log": LOG,
            "a.log.gz": gzip.compress(LOG),
            "a.log.zst": zstandard.ZstdCompressor().compress(LOG),
            "misnamed.log": gzip.compress(LOG),
            "plain.gz": LOG,
        }.items():
            (tmp_path / name).write_bytes(data)
            reader = Reader(str(tmp_path / name))
            with patch.object(stream, "CHUNK_BYTES", chunk):
                assert b"".join(reader.chunks()) == LOG
            assert reader.sha256 == hashlib.sha256(data).hexdigest()

    def test_a_first_chunk_is_not_copied_for_the_look_at_its_beginning(self) -> None:
        class Raw(io.BytesIO):
            def read(self, _size: int | None = -1) -> bytes:
                return LOG

        begun = stream.Tape(Raw())
        assert begun.magic == LOG[:4]
        assert begun.chunk() is LOG

    @pytest.mark.parametrize("expanded_bytes", [0, 1, 3 * stream.CHUNK_BYTES + 1])
    def test_chunks_stay_small_however_far_a_stream_expands(self, tmp_path: Path, expanded_bytes: int) -> None:
        path = tmp_path / "a.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(bytes(expanded_bytes)))
        sizes = [len(chunk) for chunk in Reader(str(path)).chunks()]
        assert sum(sizes) == expanded_bytes
        assert max(sizes, default=0) <= stream.CHUNK_BYTES

    @pytest.mark.parametrize("behind", [b"garbage", bytes(8)])
    def test_what_stands_behind_the_last_frame_must_be_a_frame(self, tmp_path: Path, behind: bytes) -> None:
        path = tmp_path / "a.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(b"one\n") + behind)
        assert "frame" in refusal(path)

    def test_empty_and_skippable_frames(self, tmp_path: Path) -> None:
        one, none = (zstandard.ZstdCompressor().compress(data) for data in (b"one\n", b""))
        skippable = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"  # RFC 8878, 3.1.2
        path = tmp_path / "a.zst"
        path.write_bytes(none + one + skippable + none + one)
        assert read(path) == b"one\none\n"

    def test_frames_one_after_the_other(self, tmp_path: Path) -> None:
        path = tmp_path / "a.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(b"one\n") + zstandard.ZstdCompressor().compress(b"two\n"))
        assert read(path) == b"one\ntwo\n"
        path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
        assert read(path) == b"one\ntwo\n"

    @pytest.mark.parametrize(
        "data", [b"", b"x", b"\x1f\x8b", b"(\xb5/\xfd"], ids=["empty", "byte", "gz magic", "zst magic"]
    )
    def test_tiny_files(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(data)
        if len(data) < 2:
            assert read(path) == data
        else:
            refusal(path)

    @pytest.mark.parametrize("suffix", [".gz", ".zst"])
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
    def test_a_cut_stream_is_refused(self, tmp_path: Path, suffix: str, share: float) -> None:
        whole = gzip.compress(LOG) if suffix == ".gz" else zstandard.ZstdCompressor().compress(LOG)
        path = tmp_path / f"a{suffix}"
        path.write_bytes(whole[: int(len(whole) * share)])
        message = refusal(path)
        assert "end" in message
        assert message.endswith(". Copy it again, or unpack what is left of it and give that.")

    @pytest.mark.parametrize("suffix", [".gz", ".zst"])
    def test_a_damaged_stream_is_refused(self, tmp_path: Path, suffix: str) -> None:
        whole = bytearray(gzip.compress(LOG) if suffix == ".gz" else zstandard.ZstdCompressor().compress(LOG))
        for place in range(20, len(whole), 37):
            whole[place] ^= 0xFF
        path = tmp_path / f"a{suffix}"
        path.write_bytes(bytes(whole))
        refusal(path)

    def test_another_compression_is_left_as_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bz2"
        path.write_bytes(bz2.compress(LOG))
        assert read(path) == bz2.compress(LOG)

    def test_a_file_that_vanished_is_named(self, tmp_path: Path) -> None:
        assert "No such file" in refusal(tmp_path / "gone.log")

    def test_a_directory_is_named(self, tmp_path: Path) -> None:
        refusal(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_an_unreadable_file_is_named_with_the_remedy(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text("x")
        path.chmod(0)
        assert "permission denied. Make it readable" in refusal(path)

    def test_a_refused_permission_is_named_with_the_remedy(self, tmp_path: Path) -> None:
        with patch.object(files, "_open", side_effect=PermissionError(13, "Permission denied")):
            assert "permission denied. Make it readable" in refusal(tmp_path / "a.log")

    def test_the_hash_is_unknown_until_the_end(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(LOG)
        reader = Reader(str(path))
        with patch.object(stream, "CHUNK_BYTES", 1000):
            next(reader.chunks())
        assert reader.sha256 is None

    def test_errors_are_ours(self) -> None:
        assert issubclass(InputError, SweepscopeError)
        assert issubclass(UsageError, SweepscopeError)


class TestMarks:
    def read(self, path: str, size: int | None = None) -> Reader:
        reader = Reader(path, size=size)
        for _ in reader.chunks():
            pass
        return reader

    @pytest.mark.parametrize("offset", [1, 700, 64 << 10, 100_000, 199_990])
    def test_reading_goes_on_behind_a_mark(self, tmp_path: Path, offset: int) -> None:
        data = os.urandom(200_000)
        path = tmp_path / "a.log"
        path.write_bytes(b"x" + data)
        mark = self.read(str(path)).mark(offset)
        assert mark is not None
        path.write_bytes(b"x" + data + b"more")
        reader = Reader(str(path))
        assert reader.resume(mark)
        assert b"".join(reader.chunks()) == (b"x" + data + b"more")[offset:]
        assert reader.sha256 is None
        assert reader.bytes_read == 200_005 - offset + 2 * min(offset, 64 << 10)
        for spoilt in (0, max(0, offset - 1)):
            changed = bytearray(b"x" + data)
            changed[spoilt] ^= 1
            path.write_bytes(changed)
            assert not Reader(str(path)).resume(mark)

    def test_a_mark_is_the_same_however_it_was_reached(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(LOG[:9_000] * 3)
        half = self.read(str(path)).mark(10_000)
        assert half is not None
        reader = Reader(str(path))
        assert reader.resume(half)
        with patch.object(stream, "CHUNK_BYTES", 1000):
            list(reader.chunks())
        assert reader.mark(reader.position) == self.read(str(path)).mark(27_000)

    def test_a_size_ends_a_plain_file_and_no_compressed_one(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(LOG)
        assert b"".join(Reader(str(path), size=10).chunks()) == LOG[:10]
        path.write_bytes(gzip.compress(LOG))
        assert b"".join(Reader(str(path), size=10).chunks()) == LOG

    def test_a_place_too_far_back_has_no_mark(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(bytes(30_000))
        with patch.multiple(stream, _REMEMBERED_BYTES=2_000, CHUNK_BYTES=1_000, MARK_BYTES=100):
            reader = self.read(str(path))
            assert reader.mark(10_000) is None
            assert reader.mark(29_000) is not None

    def test_urls_and_places_that_cannot_be_sought(self) -> None:
        store = fsspec.filesystem("memory")
        store.pipe("/marks/a.log", LOG)
        try:
            mark = self.read("memory://marks/a.log").mark(len(LOG) // 2)
            assert mark is not None
            reader = Reader("memory://marks/a.log")
            assert reader.resume(mark)
            assert b"".join(reader.chunks()) == LOG[len(LOG) // 2 :]
            with patch.object(files, "_open", side_effect=lambda _path: Unseekable(LOG)):
                reader = Reader("memory://marks/a.log")
                assert not reader.resume(mark)
                assert b"".join(reader.chunks()) == LOG
        finally:
            store.rm("/marks", recursive=True)


class Unseekable(io.BytesIO):
    """A web server that serves no ranges."""

    def seek(self, *_where: int) -> int:
        raise ValueError("Cannot seek streaming HTTP file")


def test_a_marker_holds_for_everything_below_it(tmp_path: Path) -> None:
    (tmp_path / "sweep" / "run").mkdir(parents=True)
    (tmp_path / "sweep" / "MARK").write_text("")
    is_marked = marker_above("MARK")
    assert is_marked(str(tmp_path / "sweep" / "run"))
    assert not is_marked(str(tmp_path))
    assert not is_marked("memory://sweep/run")
