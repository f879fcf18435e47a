"""Physical lines to NCCL messages: the prefix is found anywhere in a line, and glued lines are cut apart.

The prefix is `host:pid:tid [cudaDev] ` (NCCL, src/debug.cc); launchers, timestamps, progress bars and other ranks'
output may precede it, and a message may break off where another process began to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# CALL lines have no device. The host is looked for backwards from here: a pattern that began with it would be slow.
_PROCESS = re.compile(r":([0-9]{1,10}):([0-9]{1,10}) (?:\[(-?[0-9]{1,4})\] |(?=NCCL CALL ))")
HEAD = r":[0-9]{1,10}:[0-9]{1,10} (?:\[-?[0-9]{1,4}\] |NCCL CALL )"
"""Where a message begins, but for its host; for polars."""
BLANKS = " \t\r\n\x0b\x0c│┃"
"""What may follow a message: blanks, and the frame of a terminal window that it was copied from."""
_HOST = re.compile(r"[A-Za-z0-9_.-]+\Z")
_MASKED_HOST = re.compile(r"(?:\[[A-Za-z0-9_. -]+\]|<[A-Za-z0-9_. -]+>|\*+)\Z")
"""What replaces hosts in published logs."""
_HOST_CHARS = 255
# Google's plugins print the whole signature of a function as its name (google/nccl-plugin-gpudirecttcpx). Where a log
# was pasted, file names may have become links: net_ib/[p2p.cc:7](https://p2p.cc:7/).
_BODY = re.compile(
    r"(?:(?P<file>\S+:\d+)(?:/?\))? (?:\((?P<func>[^)]*)\) )?|[\d.]+ \S+:\d+ |[A-Za-z_][^\[\]]{0,300}?\):\d+ )?"
    r"NCCL (?P<level>INFO|WARN|TRACE|CALL) "
)
MAX_LINE_CHARS = 16_384
"""NCCL cuts its messages at 1,024 bytes; glued lines are longer. What follows is not looked at."""
LEAD_CHARS = 20
"""A longer text before a message may be the beginning of a table's row."""
ESCAPES = r"\x1b\[[0-9;?]*[ -/]*[@-~]"
_ESCAPES = re.compile(ESCAPES)
_STRIPPED = re.compile(r"[ \t]*(?:\[([0-9]{1,4})\] |(?=NCCL (?:INFO|WARN) ))")
NO_HOST = "?"
"""The host in facts of lines from which host and process were removed before the log was published."""
VIA = " via "
RAY_COUNT = "x across cluster]"
_RAY_COUNT = re.compile(r" ?(?:\[32m)? ?\[repeated \d+x across cluster\].*\Z")
"""Ray prints a line once for equal lines of other processes, with their number (ray/_private/ray_logging)."""


class Message(NamedTuple):
    """One message of one thread. `is_cut`: another write begins in its line, so its end may be missing."""

    host: str
    pid: int
    tid: int
    dev: int | None
    level: str
    text: str
    is_cut: bool
    is_first: bool  # nothing but what may be a launcher's prefix precedes it
    begin: int = 0  # where the host begins in the line


def clean(raw: str) -> str:
    """A line without its end and without colours, no longer than what is looked at."""
    text = raw[:MAX_LINE_CHARS].rstrip("\r\n")
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def messages(line: str) -> Iterator[Message]:
    """The messages of one physical line, in order; pieces that are not NCCL's are left out.

    A host that follows a cut text at once has swallowed its end; `hosts.true_hosts` mends that where it can.

    >>> [(m.host, m.text) for m in messages("0: n1:7:8 [0] NCCL INFO Connected all rin2:9:9 [1] NCCL INFO CC Off")]
    [('n1', 'Connected all'), ('rin2', 'CC Off')]
    """
    heads = [found for match in _PROCESS.finditer(line) if (found := _head(line, match)) is not None]
    for number, (start, end, host, groups) in enumerate(heads):
        stop = heads[number + 1][0] if number + 1 < len(heads) else len(line)
        body = _BODY.match(line, end, stop)
        if body is None:
            continue
        pid, tid, dev = groups
        text = _text(line[body.end() : stop])
        # Lines pasted as one have a blank between them; a link cut before a blank has no complete transport.
        is_joined = line[stop - 1] == " " and VIA in text
        yield Message(
            host=host,
            pid=int(pid),
            tid=int(tid),
            dev=None if dev is None else int(dev),
            level=body["level"],
            text=text,
            is_cut=number + 1 < len(heads) and not is_joined,
            is_first=number == 0 and (start == 0 or line[start - 1] in " >:\t)]"),
            begin=start,
        )


def stripped(line: str) -> Message | None:
    """The message of a line without host, process and thread, as in some published logs; the device is its `pid`.

    Where the device is gone as well, its `pid` is 0.

    >>> stripped("NCCL INFO Connected all rings").text, stripped("[3] NCCL INFO CC Off").pid, stripped("# NCCL INFO")
    ('Connected all rings', 3, None)
    """
    head = _STRIPPED.match(line)
    body = head and _BODY.match(line, head.end())
    if head is None or body is None:
        return None
    dev = int(head[1] or 0)
    return Message(NO_HOST, dev, dev, dev, body["level"], _text(line[body.end() :]), is_cut=False, is_first=False)


def _text(text: str) -> str:
    """A message without what follows it."""
    return (_RAY_COUNT.sub("", text) if RAY_COUNT in text else text).rstrip(BLANKS)


def _head(line: str, match: re.Match[str]) -> tuple[int, int, str, tuple[str, str, str | None]] | None:
    begin = max(0, match.start() - _HOST_CHARS)
    host = _HOST.search(line, begin, match.start()) or _MASKED_HOST.search(line, begin, match.start())
    if host is None:
        return None
    pid, tid, dev = match.groups()
    return host.start(), match.end(), host[0], (pid, tid, dev)
