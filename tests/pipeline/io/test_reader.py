"""Files as they are read: chunks, compression, damage, and reading on from a resume point."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import fsspec
import pytest
import zstandard

from sweepscope.pipeline.errors import InputError, SweepscopeError, UsageError
from sweepscope.pipeline.io import reader as reader_module
from sweepscope.pipeline.io import stream
from sweepscope.pipeline.io.reader import Reader
from sweepscope.schemas import limits

LOG = b"".join(b"Step: %d | Loss: 7.0\n" % i for i in range(20_000))


def read(path: Path) -> bytes:
    return b"".join(Reader(str(path)).chunks())


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


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

        begun = stream.HashedStream(Raw())
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
        with patch.object(reader_module, "_open", side_effect=PermissionError(13, "Permission denied")):
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


class TestResumePoints:
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
        mark = self.read(str(path)).resume_point(offset)
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
        half = self.read(str(path)).resume_point(10_000)
        assert half is not None
        reader = Reader(str(path))
        assert reader.resume(half)
        with patch.object(stream, "CHUNK_BYTES", 1000):
            list(reader.chunks())
        assert reader.resume_point(reader.position) == self.read(str(path)).resume_point(27_000)

    def test_a_size_ends_a_plain_file_and_no_compressed_one(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(LOG)
        assert b"".join(Reader(str(path), size=10).chunks()) == LOG[:10]
        path.write_bytes(gzip.compress(LOG))
        assert b"".join(Reader(str(path), size=10).chunks()) == LOG

    def test_a_place_too_far_back_has_no_mark(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_bytes(bytes(30_000))
        with patch.multiple(stream, _REMEMBERED_BYTES=2_000, CHUNK_BYTES=1_000, FINGERPRINT_BYTES=100):
            reader = self.read(str(path))
            assert reader.resume_point(10_000) is None
            assert reader.resume_point(29_000) is not None

    def test_urls_and_places_that_cannot_be_sought(self) -> None:
        store = fsspec.filesystem("memory")
        store.pipe("/marks/a.log", LOG)
        try:
            mark = self.read("memory://marks/a.log").resume_point(len(LOG) // 2)
            assert mark is not None
            reader = Reader("memory://marks/a.log")
            assert reader.resume(mark)
            assert b"".join(reader.chunks()) == LOG[len(LOG) // 2 :]
            with patch.object(reader_module, "_open", side_effect=lambda _path: Unseekable(LOG)):
                reader = Reader("memory://marks/a.log")
                assert not reader.resume(mark)
                assert b"".join(reader.chunks()) == LOG
        finally:
            store.rm("/marks", recursive=True)


class Unseekable(io.BytesIO):
    """A web server that serves no ranges."""

    def seek(self, *_where: int) -> int:
        raise ValueError("Cannot seek streaming HTTP file")


class TestUnpacking:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "UNPACKED_FREE_BYTES", 100_000)
        monkeypatch.setattr(stream, "CHUNK_BYTES", 50_000)

    @pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
    def test_a_log_is_read_up_to_a_hundred_times_its_size(self, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
        path = tmp_path / "a.log.gz"
        path.write_bytes(pack(b"\n" * 50_000_000))
        most = 100_000 + 100 * path.stat().st_size
        reader = Reader(str(path), is_lenient=True)
        assert most - (1 << 20) < sum(map(len, reader.chunks())) <= most
        assert reader.cut == "the rest is not read: unpack the file and give that"
        assert reader.damage == f"it unpacks to more than {most:,} bytes, 100 times its size"
        assert reader.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert refusal(path).endswith("100 times its size. Unpack it and give that file.")

    def test_what_packs_well_is_read_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log.gz"
        data = b"".join(b"step %d of 1000000 | loss 2.31\n" % i for i in range(100_000))
        path.write_bytes(gzip.compress(data))
        assert read(path) == data
