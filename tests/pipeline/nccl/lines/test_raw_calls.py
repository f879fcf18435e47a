"""COLL lines one by one."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.nccl.lines.block import Part
from sweepscope.pipeline.nccl.lines.raw_calls import CALLS, raw_calls
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render

CALL = (
    "AllReduce: opCount 1f sendbuff 0x7f10 recvbuff (nil) count 1024 datatype 7 op 4 root 0 comm 0x55d0 "
    "[nranks=16] stream 0x55ee"
)
SEND = "Send: opCount 0 sendbuff 0x1 recvbuff (nil) count 8 datatype 9 op 0 root 3 comm 0x55d0 [nranks=16] stream 0x2"


def rows(text: str, first_line: int = 1) -> list[dict[str, object]]:
    return raw_calls(Part(0, text.encode(), first_line), "/logs/a.log").to_dicts()


def test_every_word_of_a_call() -> None:
    (row,) = rows(f"n1:100:200 [3] NCCL INFO {CALL}\n", 7)
    assert row == {
        "source_path": "/logs/a.log",
        "line_no": 7,
        "host": "n1",
        "pid": 100,
        "tid": 200,
        "comm_pointer": "0x55d0",
        "nranks": 16,
        "op": "AllReduce",
        "op_count": 31,
        "element_count": 1024,
        "datatype": "float32",
        "reduction": "avg",
        "root": None,
        "send_buffer": "0x7f10",
        "recv_buffer": "(nil)",
        "stream": "0x55ee",
    }


def test_a_send_has_a_peer_and_no_reduction() -> None:
    (row,) = rows(f"n1:100:200 [3] NCCL INFO {SEND}\n")
    assert (row["op"], row["root"], row["reduction"], row["datatype"]) == ("Send", 3, None, "bfloat16")


def test_rccl_has_an_accumulator_and_words_behind() -> None:
    text = CALL.replace("count", "acc (nil) count").replace("opCount", "opCount", 1) + " task 2 globalrank 3"
    (row,) = rows(f"n1:100:200 [3] NCCL INFO {text}\n")
    assert (row["element_count"], row["stream"]) == (1024, "0x55ee")


def test_lines_that_are_glued_or_no_calls() -> None:
    prefix = "n1:100:200 [3] NCCL INFO "
    text = f"{prefix}{SEND}{prefix}{CALL}\n{prefix}AllReduce: opCount 1f sendbuff 0x7\n{prefix}Connected all rings\nloss 1\n"
    assert [(row["op"], row["line_no"]) for row in rows(text)] == [("Send", 1), ("AllReduce", 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_as_many_as_were_printed(version: str) -> None:
    job = render(Job(version, nodes=2, gpus=2, calls=12, launcher="{rank}: "))
    calls = raw_calls(Part(0, job.text().encode(), 1), "a.log")
    assert calls.schema == CALLS
    assert calls.height == sum(job.calls_by_op.values())
    rows_of_call = {(op, count): rows for op, count, rows in calls.group_by("op", "element_count").len().iter_rows()}
    assert rows_of_call == dict(job.calls_by_op)
