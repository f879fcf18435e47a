"""COLL lines counted by what they say: which lines are of the layout, and which are left."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.nccl.lines import call_tokens
from sweepscope.pipeline.nccl.lines.call_tokens import Layout, counted


def line(number: int, *, pid: int = 7, count: str = "8", end: str = "") -> str:
    return (
        f"2026 n1:{pid}:9 [0] NCCL INFO AllReduce: opCount {number:x} sendbuff 0x{number:x}0 recvbuff 0x1 count {count} "
        f"datatype 7 op 0 root 0 comm 0xab [nranks=4] stream 0x2{end}\n"
    )


def groups_of(*lines: str) -> tuple[pl.DataFrame, list[int]]:
    """Groups in the order of their first lines, and the lines that are left; the layout is that of the first line."""
    groups, left = counted(Layout.of(lines[0].rstrip("\n").encode()), "".join(lines).encode("utf-8", "surrogateescape"))
    return groups.sort("first"), left.tolist()


def test_calls_that_differ_in_addresses_are_one() -> None:
    groups, left = groups_of(line(1), line(2, pid=8), line(26))
    assert left == []
    names = ["host", "pid", "op", "count", "comm", "nranks", "lines", "first", "last", "last_op"]
    assert groups.select(names).rows() == [
        ("n1", "7", "AllReduce", "8", "0xab", "4", 2, 0, 2, "1a"),
        ("n1", "8", "AllReduce", "8", "0xab", "4", 1, 1, 1, "2"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        "\n",
        "loss 1.0\n",
        line(5, end=" more"),
        line(5, end="\t"),
        line(5, count="8x"),
        "x" * 300 + "\n",
        line(5).replace(" comm ", " cumm "),
        line(5).replace("n1:7", "n1\udcff7"),
        line(5).replace("INFO", "WARN"),
    ],
)
def test_other_lines_are_left(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_tokens, "_WINDOW_BYTES", 250)
    groups, left = groups_of(line(1), other, line(2), other, line(3))
    assert groups.select("lines", "first", "last").rows() == [(3, 0, 4)]
    assert left == [1, 3]


def test_the_last_line_needs_no_end() -> None:
    groups, left = groups_of(line(1), line(2).rstrip("\n"))
    assert groups["lines"].to_list() == [2]
    assert left == []


def test_lines_that_end_with_a_return() -> None:
    groups, left = groups_of(line(1, end="\r"), line(2, end="\r"))
    assert groups["lines"].to_list() == [2]
    assert left == []


@pytest.mark.parametrize("text", ["", "opCount", line(1).replace("n1:7:9", "n1"), line(1).replace("count 8", "count")])
def test_a_layout_is_learnt_from_an_intact_line_only(text: str) -> None:
    with pytest.raises(ValueError, match=r"COLL line|no process"):
        Layout.of(text.rstrip("\n").encode())


def test_no_layout_is_learnt_from_a_call_that_is_glued_to_a_cut_one() -> None:
    """Its words are out of order: offsets that decrease have Arrow read outside of its buffer, which ends the process."""
    cut = line(1).rstrip("\n").replace(" count 8 datatype 7 op 0 root 0", "")
    with pytest.raises(ValueError, match="not an intact COLL line"):
        Layout.of((cut + line(2).rstrip("\n")).encode())
