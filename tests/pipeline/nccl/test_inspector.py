"""Files of NCCL's Inspector plugin: calls added up by size, versions of the format, cut lines, their place in a batch."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

from sweepscope.pipeline.nccl.inspector import is_inspector, read_inspector
from tests.pipeline.ingest_in_memory import batch_of


def call(op: str = "AllReduce", *, time_us: int = 100, size: int = 1 << 20, busbw: object = 250.5, **more: Any) -> str:
    """A line as inspector_json.cc writes it: no spaces, the fields in its order."""
    header = {"id": "0x7f8c496ae9f661", "comm_name": "DP Group 0", "rank": 2, "n_ranks": 8, "nnodes": 1}
    metadata = {
        "inspector_output_format_version": "v4.0",
        "git_rev": "9019a1912",
        "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": 1_752_867_229_276_385,
        "hostname": "node-3",
        "pid": 438_776,
    }
    is_p2p = op in ("Send", "Recv")
    prefix = "p2p" if is_p2p else "coll"
    perf = {
        prefix: op,
        f"{prefix}_sn": 1407,
        **({"p2p_peer": 5} if is_p2p else {}),
        f"{prefix}_msg_size_bytes": size,
        f"{prefix}_exec_time_us": time_us,
        f"{prefix}_timing_source": "kernel_gpu",
        f"{prefix}_algobw_gbs": 143.1,
        f"{prefix}_busbw_gbs": busbw,
    }
    record = {"header": {**header, **more}, "metadata": metadata, f"{prefix}_perf": perf}
    return json.dumps(record, separators=(",", ":"))


def test_calls_of_one_size_are_one_row() -> None:
    times, speeds = [90, 100, 400], [280.0, 250.0, 60.0]
    lines = [call(time_us=time, busbw=speed) for time, speed in zip(times, speeds, strict=True)]
    found, rejects = read_inspector("\n".join([*lines, call(size=1 << 21)]) + "\n")
    row = found.row(0, named=True)
    assert not rejects
    assert found["message_bytes"].to_list() == [1 << 20, 1 << 21]
    assert (row["op"], row["rank"], row["nranks"], row["calls"]) == ("AllReduce", 2, 8, 3)
    assert (row["comm_hash"], row["comm_name"], row["host"]) == ("0x7f8c496ae9f661", "DP Group 0", "node-3")
    assert row["call_time_s"] == pytest.approx(median(times) * 1e-6)
    assert (row["fastest_call_s"], row["slowest_call_s"]) == (pytest.approx(90e-6), pytest.approx(400e-6))
    assert row["call_busbw_bytes_per_s"] == pytest.approx(250e9)


def test_sends_have_their_peer() -> None:
    found, _ = read_inspector("\n".join([call("Send"), call("Recv"), call("Send")]))
    assert found.select("op", "peer", "calls").rows() == [("Send", 5, 2), ("Recv", 5, 1)]


def test_what_is_not_known_is_null() -> None:
    found, _ = read_inspector(call(comm_name="unknown", busbw="nan"))
    assert found.select("comm_name", "call_busbw_bytes_per_s").rows() == [(None, None)]


def test_the_first_version_has_neither_names_nor_clocks() -> None:
    """The example of the plugin's README."""
    header = {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1}
    perf = {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184, "coll_exec_time_us": 61974}
    speeds = {"coll_algobw_gbs": 277.210914, "coll_busbw_gbs": 485.119099}
    record = {"header": header, "metadata": {"hostname": "example-hostname"}, "coll_perf": {**perf, **speeds}}
    text = json.dumps(record)
    found, rejects = read_inspector(text)
    (row,) = found.to_dicts()
    assert is_inspector(text)
    assert not rejects
    assert (row["comm_name"], row["timing_source"], row["nranks"]) == (None, None, 8)
    assert row["call_busbw_bytes_per_s"] == pytest.approx(485.119099e9)


@pytest.mark.parametrize("line", [call()[:-40], '{"header":{}}', "[]", "NCCL INFO something", "{" * 100_000])
def test_a_line_that_is_no_call_is_a_reject(line: str) -> None:
    found, rejects = read_inspector(f"{call()}\n{line}")
    assert found["calls"].to_list() == [1]
    assert [(number, raw) for number, _, raw in rejects] == [(2, line)]


@pytest.mark.parametrize(
    "text", ["", "{}", '{"log":"hello","stream":"stdout"}', "step 1 loss 2", '{"header":{"id":1}}']
)
def test_other_texts_are_of_others(text: str) -> None:
    assert not is_inspector(text)


def test_a_file_becomes_rows_of_its_run_and_its_ledger() -> None:
    lines = [call(), call(time_us=300), call("Send")]
    batch = batch_of({"run/node-3-pid438776.log": "\n".join([*lines, call()[:-40]]) + "\n"})
    rows = batch.other["nccl_inspector"]
    assert rows.select("op", "calls").rows() == [("AllReduce", 2), ("Send", 1)]
    assert rows["run_dir"].unique().to_list()[0].endswith("run")
    assert batch.files.select("kind", "parser", "status").rows() == [("nccl", "nccl", "parsed")]
    assert batch.rejects.select("table", "line_no").rows() == [("nccl_inspector", 4)]
