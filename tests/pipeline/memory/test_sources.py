"""Memory files through discovery and reading: rows with their file's name, refusals with a reason, nothing fatal."""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
import zipfile
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.memory.names import is_memory_file, rank_of
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.memory.allocator import Allocator, train


def snapshot() -> dict[str, Any]:
    allocator = Allocator()
    train(allocator, layers=1)
    return allocator.snapshot()


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
    value = snapshot()
    data, as_json = pickle.dumps(value), json.dumps(value)
    batch = batch_of(
        {
            "a.pickle": data,
            "b_snapshot.zip": zipped(data),
            "c.html": page(data),
            "d.pkl": data,
            "e_snapshot.json": as_json.encode(),
            "f.json.gz": gzip.compress(as_json.encode()),
        },
        chunk_bytes=1000,
    )
    assert set(batch.files["status"]) == {"parsed"}
    assert set(batch.files["parser"]) == {"memory_snapshot"}
    assert set(batch.files["parser_version"]) == {current_versions()["memory_snapshot"]}
    rows = batch.other["memory_snapshots"]
    assert rows.height == 6
    assert rows.drop("source_path").n_unique() == 1
    assert batch.other["memory_at_peak"].drop("source_path").n_unique() * 6 == batch.other["memory_at_peak"].height


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "status", "reason"),
    [
        ("evil.pickle", b"\x80\x04cos\nsystem\n\x8c\x02id\x85R.", "rejected", "GLOBAL"),
        ("cut_snapshot.json", b'{"segments": [], "device_traces": [[', "rejected", "not JSON to its end"),
        ("long_snapshot.json", b'{"device_traces": ' + b"9" * 5_000 + b"}", "rejected", "not JSON to its end"),
        ("deep_snapshot.json", b'{"device_traces": ' + b"[" * 90_000, "rejected", "nest too deep"),
        ("none.pickle", pickle.dumps({"segments": [], "device_traces": [[]]}), "skipped", "no segments and no events"),
        ("empty.pickle", b"", "rejected", "the file is empty"),
        ("text.pickle", b"step 1 loss 2\n", "rejected", "not a pickle"),
        ("other.pickle", pickle.dumps({"weights": [1.0]}), "rejected", "no list of segments"),
        ("other.pkl", pickle.dumps({"weights": [1.0]}), "skipped", "no list of segments"),
        ("tuner.pkl", b"\x80\x04cos\nsystem\n\x8c\x02id\x85R.", "skipped", "GLOBAL"),
        ("cut_snapshot.html", page(b"\x80\x04" + b"}" * 90)[:-60], "rejected", "ends inside the embedded snapshot"),
        ("bad_snapshot.html", b'<html>"base64": "???="', "rejected", "damaged base64"),
        ("memory_timeline.html", b"<html><img src='data:image/png;base64,iVBO'>", "rejected", "a picture only"),
        ("report.html", b"<html><p>loss went down</p></html>", "skipped", "without an embedded snapshot"),
        ("trace.json", b'{"schemaVersion": 1, "traceEvents": []}', "skipped", "without memory events"),
        ("memory_notes.json", b'{"hello": 1}', "skipped", "holds no memory timeline"),
        (
            "memory_stats.json",
            b'{"num_alloc_retries": 1, "reserved_bytes": {}, "allocated_bytes": {}}',
            "rejected",
            "allocated_bytes is missing",
        ),
        ("smi_memory.csv", b"a,b\n1,2\n", "skipped", "no table of runs"),
        ("snapshot.zip", zipped(b"x")[:-30], "rejected", "damaged zip"),
        ("snapshot.pt", zipped(pickle.dumps(3)), "rejected", "no list of segments"),
    ],
)
def test_what_is_no_snapshot_is_said_with_its_reason(name: str, content: bytes, status: str, reason: str) -> None:
    batch = batch_of({name: content, "train_snapshot.pickle": pickle.dumps(snapshot())})
    files = batch.files.with_columns(pl.col("path").str.split("/").list.last().alias("name"))
    row = files.row(by_predicate=pl.col("name") == name, named=True)
    assert row["status"] == status
    assert reason in row["error"]
    assert batch.other["memory_snapshots"].height == 1  # the good file beside it


def test_every_source_ends_in_its_tables() -> None:
    batch = batch_of(
        {
            "memory_timeline.raw.json": b"[[-1, 1, 1000, 0], [1700000000000000000, 2, 500, 4]]",
            "worker.pt.trace.json": b'{"schemaVersion": 1, "traceEvents": [{"name": "[memory]", "ts": 1700000000000000,'
            b' "args": {"Device Type": 1, "Device Id": 2, "Total Allocated": 7, "Total Reserved": 9}}]}',
            "rank4_memory_stats.json": b'{"allocated_bytes.all.current": 3, "reserved_bytes.all.current": 4,'
            b' "num_alloc_retries": 0}',
            "gpu.csv": b"timestamp, index, memory.used [MiB]\n2026/01/03 15:36:53.507, 0, 5 MiB\n2026/01\n",
        }
    )
    assert set(batch.files["status"]) == {"parsed"}
    snapshots = (
        batch.other["memory_snapshots"].sort("mem_source").select("mem_source", "device", "rank", "allocated_bytes")
    )
    assert snapshots.rows() == [
        ("kineto", 2, None, 7),
        ("memory_stats", None, 4, 3),
        ("profiler_timeline", None, None, 1500),
    ]
    assert batch.other["gpu_samples"]["mem_used_bytes"].to_list() == [5 << 20]
    assert batch.rejects.select("line_no", "table", "raw").rows() == [(3, "gpu_samples", "2026/01")]


@pytest.mark.parametrize(
    "name",
    [
        "snapshot.pickle",
        "rank0.PKL",
        "oom_dump.pt",
        "trace_plot.html",
        "memory.zip",
        "a.pt.trace.json.gz",
        "snapshot.json",
        "rocm_smi.json",
        "amd-smi.jsonl",
        "nvidia-smi.txt",
        "gpustat.json",
        "rocm.json",
        "gpu_0.json",
    ],
)
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


BOX = """\
Wed May 14 08:21:05 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
| N/A   41C    P0            312W /  700W |   60231MiB /  81559MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
SUMMARY = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|            CUDA OOMs: 1            |        cudaMalloc retries: 1         |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
| GPU reserved memory   |   12420 MB |   12420 MB |   16924 MB |    4504 MB |
|===========================================================================|
"""


@pytest.mark.parametrize(
    ("text", "table"), [(BOX, "gpu_samples"), (SUMMARY, "memory_snapshots"), (f"$ show\n{BOX}", "gpu_samples")]
)
def test_a_recording_is_read_whatever_its_name(text: str, table: str) -> None:
    read = batch_of({"node12.txt": text})
    (row,) = read.other[table].to_dicts()
    assert str(row["source_path"]).endswith("node12.txt")
    (file,) = read.files.select("kind", "status", "error", "parser", "parser_version").to_dicts()
    assert (file["kind"], file["status"], file["error"]) == ("memory", "parsed", None)
    assert file["parser_version"] == current_versions()[file["parser"]]


def test_a_document_that_quotes_a_recording_is_left_out() -> None:
    prose = "".join(f"The node was slow on day {day}, and nobody could say why it was.\n" for day in range(1, 9))
    read = batch_of({"node12.txt": prose + BOX})
    assert read.files["status"].to_list() == ["skipped"]
    assert "gpu_samples" not in read.other


def test_a_training_that_begins_with_a_recording_is_a_training() -> None:
    steps = "".join(f"step {step} | loss {9 / step:.3f} | lr 0.001\n" for step in range(1, 9))
    read = batch_of({"node12.txt": BOX + steps})
    assert read.files.select("kind", "status").rows() == [("log", "parsed")]
    assert "gpu_samples" not in read.other


def test_a_table_of_samples_named_like_a_log_is_no_run() -> None:
    read = batch_of({"query.txt": "index, memory.used [MiB]\n0, 575 MiB\n1, 1234 MiB\n"})
    assert read.files.select("kind", "status", "parser").rows() == [("memory", "parsed", "gpu_samples")]
    assert read.other["gpu_samples"].height == 2
