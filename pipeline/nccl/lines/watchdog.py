"""Lines of PyTorch's collective watchdog (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp), every wording.

The rank is taken from `[rank3]:` (global; torch 2.2+) or from srun's label; `[Rank 3]` inside the text is the rank
within a group in old builds and was cached per process until mid-2026 (pytorch issue 191305).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from sweepscope.pipeline.nccl.facts import SCHEMAS, Notes
from sweepscope.pipeline.text.secrets import shorten

_INT = r"-?\d{1,20}"
_MOST = (1 << 62) - 1  # coalesced work has 2^64 - 1 elements, and what was never written is garbage
_GLOBAL = re.compile(r"\[rank(\d{1,7})\]:")
_LABEL = re.compile(r"^\s*(\d{1,5}): |^\[\d+,(\d+)\]<std")
_STAMP = re.compile(
    r"\[[EWFI](\d{3,4} \d\d:\d\d:\d\d\.\d+) \S+\.(?:cpp|hpp)[: ]|^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"
)
# Up to 1.13 without SeqNum, up to 2.0 without the sizes. With NCCL_BLOCKING_WAIT the rank itself gives up, which reads
# "Caught collective ..." up to 1.13 and "Work WorkNCCL(...) timed out in blocking wait" since.
_WORK = re.compile(
    r"\[Rank (?P<printed>\d{1,7})\]\s+(?:(?:Watchdog c|C)aught collective operation timeout: |"
    r"Work (?=Work\w*\([^()]*\(ms\)=-?\d+\) timed out in blocking wait))"
    rf"Work\w*\((?:SeqNum=(?P<seq>{_INT}), )?OpType=(?P<op>\w+)"
    rf"(?:, (?:TensorShape=\[[\d, ]*\]|NumelIn=(?P<nin>{_INT})))?"
    rf"(?:, NumelOut=(?P<nout>{_INT}))?, Timeout\(ms\)=(?P<timeout>{_INT})\)(?: ran for (?P<ran>{_INT}) milliseconds)?"
)
# 2.1 "Exception", 2.2-2.3 "Timeout at NCCL work", 2.4 "Exception (either ..)", 2.5+ "failure detected by watchdog".
# A rank that did not time out itself prints its progress when another one asks for dumps. Newer versions add what
# started.
_CAUSES = (
    rf"Timeout at NCCL work: (?P<a>{_INT}), ",
    rf"Exception (?:\(either an error or timeout\) )?(?:detected by watchdog )?at (?:NCCL )?work: (?P<b>{_INT}), ",
    rf"failure detected by watchdog at work sequence id: (?P<c>{_INT}) PG status: ",
    r"(?P<dump>Received a dump signal due to a collective timeout from.{1,40}? we will try our best to dump "
    r"the debug info\. )",
)
_STATUS = re.compile(
    r"\[(?:PG (?:ID )?(?P<group>\w+)(?: PG GUID (?P<guid>[^\]]*?))? )?Rank (?P<printed>\d{1,7})\]\s+"
    rf"(?:{'|'.join(_CAUSES)})"
    rf"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>{_INT})(?:, last started .{{1,120}}?)?, "
    rf"last completed (?:NCCL )?work: (?P<completed>{_INT})"
)
_STUCK = re.compile(
    r"(?:Heartbeat monitor timed out|watchdog (?:thread )?got stuck for (?P<s>\d+) seconds|"
    r"ProcessGroupNCCL's watchdog got stuck)"
)
# A rank's error (torch 2.2+ labels tracebacks with the rank), and lines with the size of the job.
_DIED = r"\[rank([0-9]{1,7})\]:[ \t]*((?:[A-Za-z_][A-Za-z0-9_.]*)?(?:Error|Exception)\b[^\r\n]*)"
# TORCH_NCCL_DESYNC_DEBUG (c10d/TraceUtils.h): every rank that gives up names those that are behind, by their rank in
# the group.
_LAGS = (
    r"(?:ranks )?\[([0-9][0-9, ]{0,4000})\] (?:are the lagging ranks that caused this timeout|"
    r"joined but didn't finish collective #([0-9]{1,18})|"
    r"finished collective #[0-9]{1,18}, but didn't join collective #([0-9]{1,18}))"
)
_FOLLOWERS = ("DistBackendError", "NCCL", "ProcessGroup", "Gloo", "Socket Timeout", "Connection reset")
_WORLDS = (
    r"I am worker [0-9]{1,7} of ([0-9]{1,7})\b",
    r"world_size['\"]?(?: ?[:=] ?|\.{3,}[ \t]*)([0-9]{1,7})\b",
    r"WORLD_SIZE[:=] ?([0-9]{1,7})\b",
)
_DIED_LINE, _WORLD_LINES = re.compile(_DIED), tuple(re.compile(pattern) for pattern in _WORLDS)
_LAGS_LINE = re.compile(_LAGS)
CONTEXT = "|".join((_DIED, _LAGS, *_WORLDS))
"""Lines that `read_context` looks at, as a pattern of polars."""
_ENOUGH = 32
_TEXT_CHARS = 500
_VALUES = SCHEMAS["watchdog"].names()[3:]
CAUGHT = "Watchdog caught"
LITERALS = (
    CAUGHT,
    "Caught collective operation timeout",
    "in blocking wait",
    "work: ",
    "got stuck",
    "Heartbeat monitor timed out",
)


def read_watchdog(line: str, line_no: int, notes: Notes) -> bool:
    """Add every watchdog fact of a line: the collective that a rank gave up on, and its progress in the group."""
    hit = False
    for found in _WORK.finditer(line):
        names = {"seq": "seq", "numel_in": "nin", "numel_out": "nout", "timeout_ms": "timeout", "ran_for_ms": "ran"}
        sizes = {name: _int(found[group]) for name, group in names.items()}
        _add(notes, line_no, "timeout", op=found["op"], **sizes, **_printed(line, found))
        hit = True
    for found in _STATUS.finditer(line):
        _add(
            notes,
            line_no,
            "dump" if found["dump"] else "status",
            seq=next((int(found[name]) for name in "abc" if found[name] is not None), None),
            group=found["guid"] or found["group"],
            enqueued=_int(found["enqueued"]),
            completed=_int(found["completed"]),
            **_printed(line, found),
        )
        hit = True
    if not hit and _STUCK.search(line):
        _add(notes, line_no, "stuck", **_printed(line, None))
        hit = True
    return hit


def _add(notes: Notes, line_no: int, kind: str, **values: object) -> None:
    """One `watchdog` fact; columns without a value are NULL."""
    notes.add("watchdog", line_no, kind, *(values.get(name) for name in _VALUES))


def _printed(line: str, found: re.Match[str] | None) -> dict[str, object]:
    """Ranks, time and text of a line."""
    rank, printed_rank = _rank(line, found)
    text = shorten(line.strip(), _TEXT_CHARS)
    return {"rank": rank, "printed_rank": printed_rank, "stamp": _stamp(line), "text": text}


def matches(line: str) -> tuple[int, int]:
    """How many facts a line has, and how many of them are complete to the last number."""
    timeouts, status = list(_WORK.finditer(line)), sum(1 for _ in _STATUS.finditer(line))
    return len(timeouts) + status, sum(found["ran"] is not None for found in timeouts)


def read_context(lines: Iterable[tuple[int, int, str]], notes: Notes) -> None:
    """Add what helps to judge a hang: ranks that fail for another reason or are reported as lagging; the job's size.

    Args:
        lines: source, number and text of the lines with CONTEXT in them.
    """
    seen: Counter[tuple[int, object]] = Counter()
    for source, line_no, text in lines:
        notes.source = source
        for died in _DIED_LINE.finditer(text):
            seen[(source, "died")] += 1
            if seen[(source, "died")] <= _ENOUGH and not any(word in died[2] for word in _FOLLOWERS):
                _add(notes, line_no, "died", rank=int(died[1]), text=shorten(died[2], _TEXT_CHARS))
        for lags in _LAGS_LINE.finditer(text):
            _add_lagging(lags, line_no, notes, seen)
        for pattern in _WORLD_LINES:
            world = pattern.search(text)
            if world and not seen[(source, pattern)]:
                seen[(source, pattern)] += 1
                _add(notes, line_no, "world", enqueued=int(world[1]))


def _add_lagging(lags: re.Match[str], line_no: int, notes: Notes, seen: Counter[tuple[int, object]]) -> None:
    """A row per rank that a desync report names. Every rank that gave up prints the same."""
    seq = lags[2] or lags[3]
    for rank in re.findall("[0-9]{1,7}", lags[1]):
        seen[(notes.source, (rank, seq))] += 1
        if seen[(notes.source, (rank, seq))] == 1:
            _add(notes, line_no, "lags", rank=int(rank), seq=seq and int(seq), text=shorten(lags[0], _TEXT_CHARS))


def _rank(line: str, found: re.Match[str] | None) -> tuple[int | None, int | None]:
    """Global rank, and the rank printed in the text."""
    printed = int(found["printed"]) if found else None
    end = found.start() if found else len(line)
    labels = _GLOBAL.findall(line, 0, end)
    if labels:
        return int(labels[-1]), printed
    label = _LABEL.match(line)
    return (int(label[1] or label[2]) if label else printed), printed


def _int(text: str | None) -> int | None:
    value = None if text is None else int(text)
    return None if value is None or value > _MOST else value


def _stamp(line: str) -> str | None:
    found = _STAMP.search(line)
    return (found[1] or found[2]) if found else None
