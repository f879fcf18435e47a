"""Values as Slurm prints them: states, exit codes, durations, times, memory and resources.

Every function takes one text and returns None for an unknown value (`Unknown`, `None`, `N/A`) and for one that it
cannot read, such as a value cut by a narrow column (`OUT_OF_ME+` is read, because only one state begins so;
`2024-05-27T21:4+` is not).
Formats: src/common/parse_time.c, slurm_protocol_defs.c of Slurm.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_STATES = (
    {"COMPLETED": "completed", "FAILED": "failed", "OUT_OF_MEMORY": "out_of_memory", "TIMEOUT": "timeout"}
    | {"DEADLINE": "deadline", "CANCELLED": "cancelled", "NODE_FAIL": "node_fail", "BOOT_FAIL": "boot_fail"}
    | {"PREEMPTED": "preempted", "REQUEUED": "requeued", "RUNNING": "running", "PENDING": "pending"}
    | {"SUSPENDED": "suspended", "LAUNCH_FAILED": "failed", "RECONFIG_FAIL": "failed", "REVOKED": "cancelled"}
    | {"COMPLETING": "running", "CONFIGURING": "running", "RESIZING": "running", "SIGNALING": "running"}
    | {"STAGE_OUT": "running", "STOPPED": "suspended", "REQUEUE_FED": "pending", "REQUEUE_HOLD": "pending"}
    | {"RESV_DEL_HOLD": "pending", "SPECIAL_EXIT": "pending", "POWER_UP_NODE": "pending", "EXPEDITING": "pending"}
)
"""Slurm's state -> word of schemas.vocab.scheduler.JOB_STATE."""

_SHORT = (
    {"BF": "boot_fail", "CA": "cancelled", "CD": "completed", "CF": "running", "CG": "running"}
    | {"DL": "deadline", "F": "failed", "NF": "node_fail", "OOM": "out_of_memory", "PD": "pending"}
    | {"PR": "preempted", "R": "running", "RD": "pending", "RF": "pending", "RH": "pending"}
    | {"RQ": "requeued", "RS": "running", "RV": "cancelled", "S": "suspended", "SE": "pending"}
    | {"SI": "running", "SO": "running", "ST": "suspended", "TO": "timeout", "LF": "failed"}
)
"""squeue's short forms (squeue(1), JOB STATE CODES)."""

_SQUEUE_CHARS = 8
"""Letters to which `squeue -l` cuts states, without a mark."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


def state(text: str) -> str | None:
    """Word of JOB_STATE; `unknown` for a state that is not in our tables.

    >>> [state(t) for t in ("TIMEOUT", "CANCELLED by 1000", "OUT_OF_ME+", "CA", "COMPLETED+", "12:30")]
    ['timeout', 'cancelled', 'out_of_memory', 'cancelled', 'completed', None]
    """
    word = text.strip().split(" ", 1)[0].split(",", 1)[0]
    if word.endswith("+"):
        candidates = {meaning for name, meaning in _STATES.items() if name.startswith(word[:-1])}
        return candidates.pop() if len(word) > 2 and len(candidates) == 1 else None
    known = _STATES.get(word) or _SHORT.get(word)
    if known is None and len(word) == _SQUEUE_CHARS:
        candidates = {meaning for name, meaning in _STATES.items() if name.startswith(word)}
        known = candidates.pop() if len(candidates) == 1 else None
    return known or ("unknown" if re.fullmatch(r"[A-Z][A-Z_]{3,}", word) else None)


def cancelled_by(text: str) -> str | None:
    """The user who cancelled a job, which sacct adds to the state.

    >>> cancelled_by("CANCELLED by 1000")
    'cancelled by 1000'
    """
    match = re.match(r"CANCELLED by (\w+)", text.strip())
    return f"cancelled by {match[1]}" if match else None


def exit_code(text: str) -> int | None:
    """The code of `code:signal`.

    >>> exit_code("1:0"), exit_code("0:9"), exit_code("")
    (1, 0, None)
    """
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text.strip())
    return int(match[1]) if match else None


def exit_signal(text: str) -> int | None:
    """The signal of `code:signal`."""
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text.strip())
    return int(match[2]) if match else None


def seconds(text: str) -> int | None:
    """A duration `[days-]hours:minutes:seconds[.fraction]`, or plain seconds (sacct's ...Raw columns).

    >>> seconds("1-00:00:12"), seconds("05:10"), seconds("00:01:30.250"), seconds("3600"), seconds("UNLIMITED")
    (86412, 310, 90, 3600, None)
    """
    match = re.fullmatch(r"(?:(\d{1,7})-)?(?:(\d{1,7}):)?(\d{1,2}):(\d{1,2})(?:\.\d+)?", text.strip())
    if match:
        days, hours, minutes, seconds_ = (int(part or 0) for part in match.groups())
        return days * 86_400 + hours * 3600 + minutes * 60 + seconds_
    return int(text) if re.fullmatch(r"\s*\d{1,12}\s*", text) else None


def moment(text: str) -> datetime | None:
    """A time as Slurm prints it by default; `%s` (SLURM_TIME_FORMAT) is read as UTC.

    >>> moment("2021-05-27T21:42:11"), moment("Unknown")
    (datetime.datetime(2021, 5, 27, 21, 42, 11), None)
    """
    text = text.strip()
    if re.fullmatch(r"\d{10}", text):
        return datetime(1970, 1, 1) + timedelta(seconds=int(text))
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def memory_bytes(text: str) -> int | None:
    """`1180K`, `1.5G`, or plain bytes; a limit's `n` and `c` (per node, per core) are left off.

    >>> memory_bytes("1180K"), memory_bytes("1.50G"), memory_bytes("0"), memory_bytes("16?")
    (1208320, 1610612736, 0, None)
    """
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)([KMGTP]?)[nc]?", text.strip())
    size = round(float(match[1]) * _UNITS[match[2]]) if match else None
    return size if size is not None and size < 2**62 else None


def resource(text: str, name: str) -> int | None:
    """Amount of one trackable resource in `cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=512G,node=2`.

    Amounts that are listed by type only are added up.

    >>> resource("cpu=64,gres/gpu:a100=8,gres/gpu=8,node=2", "gres/gpu"), resource("gres/gpu:h100=4", "gres/gpu")
    (8, 4)
    """
    amounts = dict(re.findall(r"([^,=]+)=(\d{1,9})(?:,|$)", text))
    if name in amounts:
        return int(amounts[name])
    typed = [int(value) for key, value in amounts.items() if key.startswith(f"{name}:")]
    return sum(typed) if typed else None


def gpu_type(text: str) -> str | None:
    """The one type of GPU that a list of resources names.

    >>> gpu_type("cpu=64,gres/gpu:a100=8,gres/gpu=8"), gpu_type("gres/gpu=8")
    ('a100', None)
    """
    found = set(re.findall(r"gres/gpu:([\w.-]+)=", text))
    return found.pop() if len(found) == 1 else None


def job_and_step(text: str) -> tuple[str | None, str | None]:
    """Job id and step of a JobID; a cut job id is None, a cut step is completed where its beginning is unique.

    >>> job_and_step("123.batch"), job_and_step("123_4.0"), job_and_step("22105866.ex+"), job_and_step("1234567890+")
    (('123', 'batch'), ('123_4', '0'), ('22105866', 'extern'), (None, None))
    """
    match = re.fullmatch(r"(\d+(?:_(?:\d+|\[[^\]]*\]?\+?))?(?:\+\d+)?)(?:\.([\w+-]+))?", text.strip())
    if not match:
        return None, None
    job, step = match[1], match[2]
    if step and step.endswith("+"):
        whole = [name for name in ("batch", "extern", "interactive") if name.startswith(step[:-1])]
        step = whole[0] if len(whole) == 1 else None
        if step is None:
            return None, None
    return job, step
