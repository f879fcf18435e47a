"""Memory files through discovery and reading: rows with their file's name, refusals with a reason, nothing fatal."""

from __future__ import annotations

import base64
import io
import pickle
import zipfile

import polars as pl
import pytest

from pipeline.memory.names import is_memory_file, rank_of
from pipeline.parse.registry import current_versions
from tests.pipeline.landed import batch_of
from tests.pipeline.memory.allocator import Allocator, train


def snapshot() -> bytes:
    allocator = Allocator()
    train(allocator, layers=1)
    return pickle.dumps(allocator.snapshot())


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


def page(data: bytes) -> bytes:
    text = base64.b64encode(data + b"\0" * (-len(data) % 3))
    return b'<!DOCTYPE html>\n<script>const local_files = [{"name": "x", "base64": "' + text + b'"}]\n</script>'


def test_the_same_snapshot_in_every_container_gives_the_same_rows() -> None:
    data = snapshot()
    batch = batch_of(
        {"a.pickle": data, "b_snapshot.zip": zipped(data), "c.html": page(data), "d.pkl": data}, chunk_bytes=1000
    )
    assert set(batch.files["status"]) == {"parsed"}
    assert set(batch.files["parser"]) == {"memory_snapshot"}
    assert set(batch.files["parser_version"]) == {current_versions()["memory_snapshot"]}
    rows = batch.other["memory_snapshots"]
    assert rows.height == 4
    assert rows.drop("source_path").n_unique() == 1
    assert batch.other["memory_at_peak"].drop("source_path").n_unique() * 4 == batch.other["memory_at_peak"].height


@pytest.mark.parametrize(
    ("name", "content", "status", "reason"),
    [
        ("evil.pickle", b"\x80\x04cos\nsystem\n\x8c\x02id\x85R.", "rejected", "GLOBAL"),
        ("empty.pickle", b"", "rejected", "the file is empty"),
        ("text.pickle", b"step 1 loss 2\n", "rejected", "not a pickle"),
        ("other.pkl", pickle.dumps({"weights": [1.0]}), "rejected", "no list of segments"),
        ("cut_snapshot.html", page(b"\x80\x04" + b"}" * 90)[:-60], "rejected", "ends inside the embedded snapshot"),
        ("bad_snapshot.html", b'<html>"base64": "???="', "rejected", "damaged base64"),
        ("memory_timeline.html", b"<html><img src='data:image/png;base64,iVBO'>", "rejected", "a picture only"),
        ("report.html", b"<html><p>loss went down</p></html>", "skipped", "without an embedded snapshot"),
        ("snapshot.zip", zipped(b"x")[:-30], "rejected", "damaged zip"),
        ("snapshot.pt", zipped(pickle.dumps(3)), "rejected", "no list of segments"),
    ],
)
def test_what_is_no_snapshot_is_said_with_its_reason(name: str, content: bytes, status: str, reason: str) -> None:
    batch = batch_of({name: content, "train_snapshot.pickle": snapshot()})
    files = batch.files.with_columns(pl.col("path").str.split("/").list.last().alias("name"))
    row = files.row(by_predicate=pl.col("name") == name, named=True)
    assert row["status"] == status
    assert reason in row["error"]
    assert batch.other["memory_snapshots"].height == 1  # the good file beside it


@pytest.mark.parametrize("name", ["snapshot.pickle", "rank0.PKL", "oom_dump.pt", "trace_plot.html", "memory.zip"])
def test_names_that_may_hold_memory(name: str) -> None:
    assert is_memory_file(name)


@pytest.mark.parametrize("name", ["checkpoint.pt", "model.zip", "run.log", "config.json", "pickle.txt", "data.bin"])
def test_names_that_hold_something_else(name: str) -> None:
    assert not is_memory_file(name)


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("/r/rank3_memory_snapshot.pickle", 3),
        ("/r/snapshot_oom_rank-12.pickle", 12),
        ("/r/iteration_10_oom/rank_7/dump.pickle", 7),
        ("/r/r2/x.pickle", 2),
        ("/r/for2_4.pickle", None),
    ],
)
def test_the_rank_is_in_the_path(path: str, rank: int | None) -> None:
    assert rank_of(path) == rank
