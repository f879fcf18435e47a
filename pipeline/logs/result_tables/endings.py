"""How a run ended, in the words of somebody's table."""

from __future__ import annotations

import re

_ENDINGS: tuple[tuple[str, str], ...] = (
    (r"host.?oom|oom.?kill|out.of.host.memory", "host_oom"),
    (r"\boom\b|cuda.?oom|out.?of.?(?:gpu.?)?memory", "oom"),
    (r"node.?fail|hw.?fail|hardware|xid|ecc", "node_fail"),
    (r"nccl|infiniband|network", "nccl_error"),
    (r"hang|hung|stuck|deadlock|stall", "hang"),
    (r"time.?out|time.?limit|walltime|timed.?out", "timeout"),
    (r"preempt", "preempted"),
    (r"cancel|killed|abort|interrupt|stopped", "cancelled"),
    (r"running|pending|in.?progress|queued", "running"),
    (r"crash|exception|traceback|segfault|assert", "crash"),
    (r"not.?(?:ok|complete|finish|converge)|unsuccess|fail|error|false|bad|\bno\b|\bx\b|✗|❌", "failed"),
    (r"\bok\b|success|succeed|succeeded|pass|complete|finish|done|true|\byes\b|good|✓|✔|✅", "completed"),
)
_WORDS = tuple((re.compile(form, re.IGNORECASE), status) for form, status in _ENDINGS)


_NUMBERS = {"0": "failed", "1": "completed"}
_EXIT_CODE = re.compile(r"-?\d+")


def ending(text: str, header: str = "") -> str | None:
    """A word of vocab.STATUS; None for a text that names no end. A number means what its header makes of it.

    >>> ending("OOM"), ending("Success"), ending("TIMED_OUT"), ending("n/a"), ending("did not finish")
    ('oom', 'completed', 'timeout', None, 'failed')
    >>> ending("0", "exit code"), ending("137", "exit code"), ending("1", "success"), ending("1")
    ('completed', 'failed', 'completed', None)
    """
    text, header = text.strip(), header.lower()
    if _EXIT_CODE.fullmatch(text):
        if "exit" in header or "error" in header:
            return "completed" if int(text) == 0 else "failed"
        return _NUMBERS.get(text) if "ok" in header or "succe" in header else None
    return next((status for form, status in _WORDS if form.search(text)), None)
