"""Lines of communicator initialisation (src/init.cc): start, complete, destroy, abort, timings, channels, network."""

from __future__ import annotations

import re

from pipeline.nccl.facts import PARTS, Notes
from pipeline.nccl.messages import Message

_STATES = {"Init START": "started", "Init COMPLETE": "complete", "Destroy COMPLETE": "destroyed",
           "Abort COMPLETE": "aborted"}  # fmt: skip
# 2.29+ begins START with [Rank R]; 2.21+ names the call; a split's START has no blank before the dash. Old versions
# lack commId (until 2.15) and busId (2.4), and splits lack commId from 2.24 on. RCCL adds words behind commId.
_INIT = re.compile(
    r"(?:\[Rank \d+\] )?(?:(?P<api>nccl\w+) )?comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d{1,9}) "
    r"nranks (?P<nranks>\d{1,9})"
    r"(?: cudaDev (?P<cuda>-?\d{1,9}))?(?: nvmlDev (?P<nvml>-?\d{1,9}))?(?: busId (?P<bus>[0-9a-f]+))?(?P<more>.*?) ?- "
    r"(?P<state>Init START|Init COMPLETE|Destroy COMPLETE|Abort COMPLETE)\s*\Z"
)
_HASH = re.compile(r" commId (0x[0-9a-f]+)")
_SPLIT = re.compile(r" parent (0x[0-9a-f]+)(?: splitCount (\d{1,9}))? color (-?\d{1,9})")
_TIMING = re.compile(r"Init timings(?: - \w+)?: rank (\d{1,9}) nranks (\d{1,9}) total ([\d.]+) \(([^)]*)\)")
_SHAPE = re.compile(r"comm (0x[0-9a-f]+) rank (\d{1,9}) nRanks (\d{1,9}) nNodes (\d{1,9}) ")
_CHANNELS = re.compile(
    r"(\d{1,9}) coll channels, (?:(\d{1,9}) collnet channels, )?(?:(\d{1,9}) nvls channels, )?(\d{1,9}) p2p channels"
    r"(?:, (\d{1,9}) p2p channels per peer)?"
)


def read_init(message: Message, line_no: int, notes: Notes) -> bool:
    """A line that a communicator or one of its ranks begins, is ready or has ended."""
    found = _INIT.match(message.text)
    if found is None:
        return False
    split = _SPLIT.search(found["more"])
    comm_hash = _HASH.search(found["more"])
    notes.add(
        "init", line_no, message.host, message.pid, message.tid, _STATES[found["state"]], found["api"], found["comm"],
        int(found["rank"]), int(found["nranks"]), _int(found["cuda"]), _int(found["nvml"]), found["bus"],
        comm_hash and comm_hash[1], split and split[1], split and _int(split[2]), split and int(split[3]),
    )  # fmt: skip
    return True


def read_timing(message: Message, line_no: int, notes: Notes) -> bool:
    """`Init timings`, which follows a COMPLETE line of the same thread; seconds, two decimals."""
    found = _TIMING.match(message.text)
    if found is None:
        return False
    parts = dict(part.rsplit(" ", 1) for part in found[4].split(", ") if " " in part)
    values = [_float(parts.get(name)) for name in PARTS]
    row = (int(found[1]), int(found[2]), _float(found[3]), *values)
    notes.add("timing", line_no, message.host, message.pid, message.tid, *row)
    return True


def read_shape(message: Message, line_no: int, notes: Notes) -> bool:
    """`comm .. rank .. nRanks .. nNodes ..`: how many hosts a communicator spans."""
    found = _SHAPE.match(message.text)
    if found is None:
        return False
    notes.add("shape", line_no, message.host, message.pid, message.tid, found[1], *map(int, found.groups()[1:]))
    return True


def read_channels(message: Message, line_no: int, notes: Notes) -> bool:
    """`16 coll channels, 16 collnet channels, 0 nvls channels, ...`; what a version does not print is NULL."""
    found = _CHANNELS.match(message.text)
    if found is None:
        return False
    notes.add("channels", line_no, message.host, message.pid, message.tid, *map(_int, found.groups()))
    return True


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _float(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
