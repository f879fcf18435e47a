"""The JSON of nccl-tests: keys as src/util.cu writes them, numbers made up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.nccl.bench.json_report import is_bench, read_bench
from sweepscope.schemas.registry import TABLES
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.nccl.reading import row_of, tables_from


def half(time: float, wrong: float | None = 0.0) -> dict[str, Any]:
    return {"time": time, "alg_bw": 40.9, "bus_bw": 76.6875, "nwrong": wrong}


def row(size: int, **changes: Any) -> dict[str, Any]:
    fields = {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1"}
    return fields | {"out_of_place": half(25.125), "in_place": half(26.25, None), "actual_iterations": 20} | changes


def document(*rows: dict[str, Any], processes: int = 16, gpus: int = 1, program: str = "all_reduce") -> str:
    devices = [
        {
            "rank": rank * gpus,
            "group": 0,
            "pid": 70 + rank,
            "hostname": f"node{rank // 8 if gpus == 1 else rank}",
            "device": 0,
            "device_hex": "0000:1b:00",
            "device_info": "NVIDIA H100 80GB HBM3",
        }
        for rank in range(processes)
    ]
    fields = {
        "version": 2,
        "start_time": "2025-11-03 10:20:30",
        "args": [f"./build/{program}_perf", "-J", "x.json"],
        "env": ["PATH=/bin", "NCCL_DEBUG=INFO"],
        "nccl_version": 22902,
        "config": {"nthreads": 1, "ngpus": gpus, "minimum_bytes": 8, "devices": devices},
        "results": list(rows),
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 76.6875, "okay": "unchecked"},
        "errors": [],
    }
    return json.dumps(fields, separators=(",", ":"))


def tables_of(text: str) -> dict[str, Any]:
    assert is_bench(text)
    return tables_from(read_bench(text, 0), ["x.json"])


@pytest.mark.parametrize(("processes", "gpus"), [(16, 1), (2, 8)])
def test_rows_say_what_a_printed_table_says(processes: int, gpus: int) -> None:
    tables = tables_of(document(row(1 << 20), row(1 << 30), processes=processes, gpus=gpus))
    first, second = tables["nccl_bench"].iter_rows(named=True)
    assert (first["line_no"], first["op"], first["op_source"]) == (1, "AllReduce", "printed")
    assert (first["nranks"], first["num_nodes"], first["accelerator"]) == (16, 2, "H100-SXM-80GB")
    assert (first["message_bytes"], first["element_count"], first["datatype"]) == (1 << 20, 1 << 18, "float")
    assert (first["reduction"], first["root"], first["wrong_elements"]) == ("sum", -1, 0)
    assert (first["time_s"], first["in_place_time_s"]) == pytest.approx((25.125e-6, 26.25e-6))
    assert first["busbw_bytes_per_s"] == pytest.approx(76.6875e9)
    assert first["in_place_wrong_elements"] is None
    assert (second["line_no"], second["message_bytes"]) == (2, 1 << 30)
    summary = row_of(tables["nccl_files"])
    assert (summary["nccl_version"], summary["nccl_env"]) == ("2.29.2", "NCCL_DEBUG=INFO")
    assert (summary["bench_rows"], summary["bench_tables"], summary["bench_avg_busbw"]) == (2, 1, 76.6875)


def test_what_was_not_measured_is_unknown() -> None:
    odd = document(row(64, out_of_place=None), row(128, in_place=half(1.0) | {"time": None, "cpu_time": 9.5}))
    odd = odd.replace('76.6875,"nwrong":null', 'inf,"nwrong":null').replace("40.9", '"nan"')
    first, second = tables_of(odd)["nccl_bench"].iter_rows(named=True)
    assert (first["time_s"], first["in_place_time_s"]) == (None, pytest.approx(26.25e-6))
    assert (first["in_place_busbw_bytes_per_s"], second["algbw_bytes_per_s"]) == (None, None)


def test_the_whole_rows_of_a_document_without_its_end() -> None:
    text = document(row(64), row(128), row(256))
    cut = text[: text.index('"size":256') + 40]
    tables = tables_of(cut)
    assert tables["nccl_bench"]["message_bytes"].to_list() == [64, 128]
    assert "bench_avg_busbw" not in row_of(tables["nccl_files"])
    with pytest.raises(ValueError, match="not a document"):
        read_bench(text[:150], 0)


def test_it_is_found_by_what_people_call_it() -> None:
    batch = batch_of(
        {
            "all_reduce.json": document(row(64)),
            "nccl-tests.json.0": document(row(64)),
            "pasted.log": document(row(64)),
            "all_reduce_shapes.json": "{}",
        }
    )
    kinds = {path.rsplit("/", 1)[1]: kind for path, kind in batch.files.select("path", "kind").iter_rows()}
    assert kinds == {
        "all_reduce.json": "nccl",
        "nccl-tests.json.0": "nccl",
        "pasted.log": "nccl",
        "all_reduce_shapes.json": "other",
    }
    assert batch.other["nccl_bench"].height == 3


def test_impossible_values_are_rejects_and_not_unknown() -> None:
    rows = tables_of(document(row(64), row(-128), row(256, in_place=half(-1.0))))["nccl_bench"]
    judged = validate(TABLES["nccl_bench"], rows)
    assert judged.valid["message_bytes"].to_list() == [64, None, 256]
    assert judged.valid["in_place_time_s"].is_null().to_list() == [False, False, True]
    assert judged.rejects.select("line_no", "column").unique().sort("line_no", "column").rows() == [
        (2, "element_count"),
        (2, "message_bytes"),
        (3, "in_place_time_s"),
    ]
