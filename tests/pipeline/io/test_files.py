"""Files as they are listed: links, hidden names, URLs, what cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import fsspec
import pytest

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.io import files, remote
from sweepscope.pipeline.io.files import list_files, marker_above
from sweepscope.pipeline.io.reader import Reader
from tests.load.unit_costs import counted
from tests.s3_server import bucket, s3_endpoint

__all__ = ["bucket", "s3_endpoint"]  # fixtures


def names(root: Path | str) -> list[str]:
    base = os.path.abspath(root)
    return sorted(os.path.relpath(entry.path, base) for entry in list_files(str(root)))


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

    def test_but_for_those_in_which_launchers_keep_what_a_run_is_known_by(self, tmp_path: Path) -> None:
        for name in ("0/.hydra/config.yaml", ".submitit/17_0/17_0_0_log.out", ".submitit/.git/a.log"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("x")
        assert names(tmp_path) == [".submitit/17_0/17_0_0_log.out", "0/.hydra/config.yaml"]

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

    def test_names_that_are_not_utf8_are_listed_and_read(self, tmp_path: Path) -> None:
        for name in (b"caf\xe9.log", b"caf\\xe9.log", b"\xff/a.log"):
            path = os.path.join(os.fsencode(tmp_path), name)
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(name)
            except OSError:
                pytest.skip("this file system keeps UTF-8 names only")
        found = {entry.path: b"".join(Reader(entry.path).chunks()) for entry in list_files(str(tmp_path))}
        assert found == {
            f"{tmp_path}/caf\\xe9.log": b"caf\xe9.log",
            f"{tmp_path}/caf\\x5cxe9.log": b"caf\\xe9.log",
            f"{tmp_path}/\\xff/a.log": b"\xff/a.log",
        }
        assert all(files.exists(path) for path in found)
        (entry,) = list_files(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9.log")))
        assert entry.path == f"{tmp_path}/caf\\xe9.log"


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
            patch.object(fsspec.core, "url_to_fs", side_effect=missing),
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


def test_a_marker_holds_for_everything_below_it(tmp_path: Path) -> None:
    (tmp_path / "sweep" / "run").mkdir(parents=True)
    (tmp_path / "sweep" / "MARK").write_text("")
    is_marked = marker_above("MARK")
    assert is_marked(str(tmp_path / "sweep" / "run"))
    assert not is_marked(str(tmp_path))
    assert not is_marked("memory://sweep/run")


def test_a_marker_behind_a_url_holds_below_it_and_costs_no_request_per_directory(bucket: str) -> None:
    system, root = remote.file_system(bucket)
    for name in ("sweep/MARK", *(f"{sweep}/run{number}/log" for sweep in ("sweep", "other") for number in range(9))):
        system.pipe_file(f"{root}/{name}", b"x")
    directories = sorted({entry.path.rpartition("/")[0] for entry in list_files(bucket)})
    is_marked = marker_above("MARK")
    with counted() as requests:
        marked = {path for path in directories if is_marked(path)}
    assert marked == {f"{bucket}/sweep", *(f"{bucket}/sweep/run{number}" for number in range(9))}
    assert requests.total() < 5
    assert not is_marked("s3://a-bucket-that-nobody-has/run")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://me:s3cretword@host/logs",
        "https://acct.blob.core.windows.net/c?sv=2022-11-02&sig=aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2mN5p%3D",
    ],
)
def test_a_url_with_a_credential_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match=r"hidden: .*kept with every row") as refused:
        list(list_files(url))
    assert "s3cret" not in str(refused.value)
    assert "aB3dE6gH" not in str(refused.value)
