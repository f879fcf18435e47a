"""The prefix anywhere in a line, and lines that are glued."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.nccl.lines.messages import messages
from tests.pipeline.nccl.nccl_logs import Job, render
from tests.pipeline.nccl.reading import tables_of

PREFIX = "gpu-17:4711:4790 [3] "


@pytest.mark.parametrize(
    "before",
    [
        "",
        "12: ",
        "  3: ",
        "[1,14]<stdout>:",
        "(Worker pid=77, ip=10.0.0.3) ",
        "[default3]:",
        "2025-06-01T10:11:12.123Z ",
        "[2026-01-02 03:04:05] ",
        "step 7/10:  70%|###   | ",
    ],
)
def test_a_launchers_prefix_does_not_matter(before: str) -> None:
    (found,) = messages(f"{before}{PREFIX}NCCL INFO Connected all rings")
    assert (found.host, found.pid, found.tid, found.dev) == ("gpu-17", 4711, 4790, 3)
    assert (found.level, found.text, found.is_cut) == ("INFO", "Connected all rings", False)


@pytest.mark.parametrize(
    ("body", "level", "text"),
    [
        ("transport/net_ib.cc:1295 NCCL WARN NET/IB : error", "WARN", "NET/IB : error"),
        ("transport/net_ib.cc:1295 (ncclIbTest) NCCL WARN NET/IB : error", "WARN", "NET/IB : error"),
        ("transport/net_ib/[p2p.cc:783](https://p2p.cc:783/) NCCL WARN NET/IB : error", "WARN", "NET/IB : error"),
        (
            "tcpxResult_t tcpxCommProgress(tcpxComm*):1231 NCCL WARN 0xad: rx ctrl timeout",
            "WARN",
            "0xad: rx ctrl timeout",
        ),
        ("117.724290 nccl_net_ofi_init:1396 NCCL TRACE NET/OFI Provider cxi", "TRACE", "NET/OFI Provider cxi"),
    ],
)
def test_every_level_has_its_shape(body: str, level: str, text: str) -> None:
    (found,) = messages(PREFIX + body)
    assert (found.level, found.text) == (level, text)


def test_a_call_line_has_no_device() -> None:
    (found,) = messages("gpu-17:4711:4790 NCCL CALL ncclAllReduce(1,2)")
    assert (found.dev, found.level, found.text) == (None, "CALL", "ncclAllReduce(1,2)")


def test_glued_lines_are_cut_apart_and_the_first_is_marked() -> None:
    line = f"{PREFIX}NCCL INFO Channel 00/0 : 1[1] -> 2[2] via P2P/CUMEM/re{PREFIX}NCCL INFO Connected all trees"
    first, second = messages(line)
    assert (first.text, first.is_cut) == ("Channel 00/0 : 1[1] -> 2[2] via P2P/CUMEM/", True)
    assert (second.host, second.text, second.is_cut) == ("regpu-17", "Connected all trees", False)


def test_links_that_were_pasted_as_one_line_are_whole() -> None:
    link = f"{PREFIX}NCCL INFO Channel 13/0 : 0[0] -> 8[0] [send] via NET/IBext/0/GDRDMA"
    assert [found.is_cut for found in messages(f"{link} {link} {PREFIX}NCCL INFO Channel 00/08 : 0 1 2")] == [False] * 3
    assert [found.is_cut for found in messages(f"{link}{link} {PREFIX}NCCL INFO Connected all rings")] == [
        True,
        False,
        False,
    ]
    assert [found.is_cut for found in messages(f"{PREFIX}NCCL INFO Channel 00/08 : 0 1 2 {link}")] == [True, False]


def test_a_prefix_that_is_cut_in_half_ends_the_message_before_it() -> None:
    line = f"{PREFIX}NCCL INFO NVLS multicast supp n2:7:7 [2] NC[rank2]:[E ProcessGroupNCCL.cpp:563] x"
    (found,) = messages(line)
    assert (found.text, found.is_cut) == ("NVLS multicast supp", True)


@pytest.mark.parametrize(
    "line", ["", "NCCL version 2.21.5+cuda12.4", "[rank0]:[E ProcessGroupNCCL.cpp:5] a:1:2", "1:2:3 [4] x"]
)
def test_other_lines_have_no_message(line: str) -> None:
    assert list(messages(line)) == []


@pytest.mark.parametrize("host", ["[pod-name]", "<hostname>", "****"])
def test_a_host_may_be_masked(host: str) -> None:
    (found,) = messages(f"[1,3]<stdout>: {host}:4711:4790 [3] NCCL INFO Connected all rings")
    assert (found.host, found.pid, found.text) == (host, 4711, "Connected all rings")


@pytest.mark.parametrize(
    "behind",
    [
        " [repeated 15x across cluster]",
        " [32m [repeated 6x across cluster] [0m",
        " [repeated 2x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable)",
    ],
)
def test_what_ray_says_of_alike_lines_is_no_part_of_the_message(behind: str) -> None:
    (found,) = messages(f"(Worker pid=77) {PREFIX}NCCL INFO Using network Socket{behind}")
    assert found.text == "Using network Socket"


def test_the_frame_of_a_terminals_window_is_no_part_of_it() -> None:
    line = f"\u2502 {PREFIX}NCCL INFO Channel 00 : 0[1000] -> 4[cb000] [send] via NET/IB/2      \u2502"
    (found,) = messages(line)
    assert (found.host, found.text) == ("gpu-17", "Channel 00 : 0[1000] -> 4[cb000] [send] via NET/IB/2")
    text = render(Job("2.14.3", nodes=2, gpus=2)).text()
    framed = "".join(f"\u2502 {line:<200}\u2502\n" for line in text.splitlines())
    assert tables_of(framed)["nccl_links"].drop("line_no").equals(tables_of(text)["nccl_links"].drop("line_no"))
