"""Lines of PyTorch's collective watchdog (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp), every wording.

The rank is taken from `[rank3]:` (global; torch 2.2+) or from srun's label; `[Rank 3]` inside the text is the rank
within a group in old builds and was cached per process until mid-2026 (pytorch issue 191305).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from pipeline.nccl.facts import Notes

_INT = r"-?\d{1,18}"
_GLOBAL = re.compile(r"\[rank(\d{1,7})\]:")
_LABEL = re.compile(r"^\s*(\d{1,5}): |^\[\d+,(\d+)\]<std")
_STAMP = re.compile(
    r"\[[EWFI](\d{3,4} \d\d:\d\d:\d\d\.\d+) \S+\.(?:cpp|hpp)[: ]|^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"
)
# Up to 1.13 without SeqNum, up to 2.0 without the sizes.
_WORK = re.compile(
    rf"\[Rank (?P<printed>\d{{1,7}})\]\s+Watchdog caught collective operation timeout: Work\w*\("
    rf"(?:SeqNum=(?P<seq>{_INT}), )?OpType=(?P<op>\w+)(?:, (?:TensorShape=\[[\d, ]*\]|NumelIn=(?P<nin>{_INT})))?"
    rf"(?:, NumelOut=(?P<nout>{_INT}))?, Timeout\(ms\)=(?P<timeout>{_INT})\)(?: ran for (?P<ran>{_INT}) milliseconds)?"
)
# 2.1 "Exception", 2.2-2.3 "Timeout at NCCL work", 2.4 "Exception (either ..)", 2.5+ "failure detected by watchdog".
# A rank that did not time out itself says how far it had come when another one asks for dumps.
_TOLD = (
    rf"Timeout at NCCL work: (?P<a>{_INT}), ",
    rf"Exception (?:\(either an error or timeout\) )?(?:detected by watchdog )?at (?:NCCL )?work: (?P<b>{_INT}), ",
    rf"failure detected by watchdog at work sequence id: (?P<c>{_INT}) PG status: ",
    r"(?P<dump>Received a dump signal due to a collective timeout from.{1,40}? we will try our best to dump "
    r"the debug info\. )",
)
_STATUS = re.compile(
    r"\[(?:PG (?:ID )?(?P<group>\w+)(?: PG GUID (?P<guid>[^\]]*?))? )?Rank (?P<printed>\d{1,7})\]\s+"
    rf"(?:{'|'.join(_TOLD)})"
    rf"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>{_INT}), last completed (?:NCCL )?work: (?P<completed>{_INT})"
)
_STUCK = re.compile(
    r"(?:Heartbeat monitor timed out|watchdog (?:thread )?got stuck for (?P<s>\d+) seconds|"
    r"ProcessGroupNCCL's watchdog got stuck)"
)
# What a rank prints when it fails (torch 2.2+ labels tracebacks), and what tells the size of the job. Each begins with
# a literal, so that a block is searched at the speed of memory.
_DIED = re.compile(rb"\[rank(\d{1,7})\]:\s*((?:[A-Za-z_][\w.]*)?(?:Error|Exception)\b[^\r\n]*)")
_FOLLOWERS = (b"DistBackendError", b"NCCL", b"ProcessGroup", b"Gloo", b"Socket Timeout", b"Connection reset")
_WORLDS = {
    b"I am worker ": re.compile(rb"I am worker \d{1,7} of (\d{1,7})\b"),
    b"world_size": re.compile(rb"world_size['\"]?(?: ?[:=] ?|\.{3,}\s*)(\d{1,7})\b"),
    b"WORLD_SIZE": re.compile(rb"WORLD_SIZE[:=] ?(\d{1,7})\b"),
}
_ENOUGH = 32
LITERALS = ("Watchdog caught", "work: ", "got stuck", "Heartbeat monitor timed out")


def read_watchdog(line: str, line_no: int, notes: Notes) -> bool:
    """Every watchdog fact of a line: which collective a rank gave up on, and how far it had come in the group."""
    hit = False
    for found in _WORK.finditer(line):
        notes.add("watchdog", line_no, "timeout", *_rank(line, found), found["op"], *_ints(found, "seq", "nin", "nout",
                  "timeout", "ran"), None, None, None, _stamp(line), line.strip()[:500])  # fmt: skip
        hit = True
    for found in _STATUS.finditer(line):
        kind = "dump" if found["dump"] else "status"
        seq = next((int(found[name]) for name in "abc" if found[name] is not None), None)
        group = found["guid"] or found["group"]
        notes.add("watchdog", line_no, kind, *_rank(line, found), None, seq, None, None, None, None, group,
                  *_ints(found, "enqueued", "completed"), _stamp(line), line.strip()[:500])  # fmt: skip
        hit = True
    if not hit and _STUCK.search(line):
        notes.add("watchdog", line_no, "stuck", *_rank(line, None), None, None, None, None, None, None, None, None,
                  None, _stamp(line), line.strip()[:500])  # fmt: skip
        hit = True
    return hit


def read_context(data: bytes, numbers: Sequence[int], notes: Notes) -> None:
    """What helps to judge a hang: ranks that fail for a reason of their own, the size of the job. A few of each.

    `numbers` are the numbers of the lines of `data`. Blocks without NCCL in them are not looked at.
    """

    def line_of(found: re.Match[bytes]) -> int:
        return numbers[data.count(b"\n", 0, found.start())]

    has_failures = b"[rank" in data and (b"Error" in data or b"Exception" in data)
    for died in islice(_DIED.finditer(data), _ENOUGH) if has_failures else ():
        if not any(word in died[2] for word in _FOLLOWERS):
            text = died[2].decode("utf-8", "replace")[:500]
            notes.add("watchdog", line_of(died), "died", int(died[1]), *(None,) * 11, text)
    for literal, pattern in _WORLDS.items():
        if literal not in data:  # many times faster than a pattern that looks for it
            continue
        for world in islice(pattern.finditer(data), 1):
            notes.add("watchdog", line_of(world), "world", *(None,) * 9, int(world[1]), *(None,) * 3)


def _rank(line: str, found: re.Match[str] | None) -> tuple[int | None, int | None]:
    """Global rank, and the rank that the text names."""
    printed = int(found["printed"]) if found else None
    end = found.start() if found else len(line)
    labels = _GLOBAL.findall(line, 0, end)
    if labels:
        return int(labels[-1]), printed
    label = _LABEL.match(line)
    return (int(label[1] or label[2]) if label else printed), printed


def _ints(found: re.Match[str], *names: str) -> list[int | None]:
    return [None if found[name] is None else int(found[name]) for name in names]


def _stamp(line: str) -> str | None:
    found = _STAMP.search(line)
    return (found[1] or found[2]) if found else None
