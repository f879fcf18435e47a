"""Scheduler job ids in names of files. What a log prints of its job counts more (`logs.evidence.jobs`)."""

from __future__ import annotations

import re

# Names that schedulers give, or that say what their number is: Slurm's slurm-%j.out and, for a task of an array,
# slurm-%A_%a.out; PBS's and SGE's %x.o%j; PBS's %j.server.OU; picotron's and nanotron's log_%j.out; submitit's
# %j_%t_log.out (core/utils.py JobPaths), where %j of an array is %A_%a.
_NAMED = re.compile(
    r"(?:^|[-_.])slurm-(\d+(?:_\d+)?)(?!\d)|\.[oe](\d{3,})(?:\[\d+\])?$|^(\d+)\.[\w-]+\.(?:OU|ER)$|"
    r"(?:^|[-_.])job(?:[-_.]?id)?[-_.]?(\d{3,}(?:_\d+)?)(?!\d)|^log_(\d+)\.(?:out|err)$|"
    r"^(\d+(?:_\d+)?)_\d+_log\.(?:out|err)$"
)
# Patterns of one's own, as `%j.out` (LSF's %J.out), `%x-%j.out`, `%x_%A_%a.err`.
_OWN = re.compile(
    r"(?:^|[-_.])(?P<id>(?P<job>\d{3,})(?:_\d{1,4})?)\.(?:(?P<stream>out|err|output|stdout|stderr)|log|txt)$"
)
_MIN_DIGITS = 6
_MIN_DIGITS_OF_STREAM = 4
"""A scheduler's output ends with .out or .err; in other names, a short number is something else."""

_NO_JOB = re.compile(
    r"(?:19|20)\d\d|(?:19|20)?\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:_?\d{4}|_?\d{6})?|"
    r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])_\d{1,3}|1[4-9]\d{8}|\d*000|0\d*"
)
"""Years, dates (with a time or the number of a try), seconds since 1970, round numbers, and padded ordinals."""
_DATE = re.compile(r"(?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d[-_.T]*$")
_SIZE = re.compile(
    r"(?i)(?:^|[^a-z])(?:steps?|iter\w*|seed|seq\w*|len|bs|mbs|gbs|batch\w*|tok\w*|epochs?|ep|rank|node|gpus?|port|v|"
    r"ver\w*|cfg|config|exp|part|shard|dim|hidden|ctx|vocab|warmup|ckpt|checkpoint)[-_.]?$"
)
"""Words in front of a number that say that it counts or measures something."""
_COMPRESSED = re.compile(r"\.(?:gz|zst)$")


def job_of(name: str) -> str:
    """Scheduler job id in a file name, or ''.

    >>> job_of("log_410022.out"), job_of("slurm-2631_7.out"), job_of("run.log")
    ('410022', '2631_7', '')
    >>> job_of("440917_3_0_log.out"), job_of("440917_0_log.err")
    ('440917_3', '440917')
    >>> job_of("train-410022.err"), job_of("config_001.log"), job_of("run-20260101-120000.log")
    ('410022', '', '')
    >>> job_of("ppo_20251228_1.log")
    ''
    """
    bare = _COMPRESSED.sub("", name)
    if named := _NAMED.search(bare):
        return str(next(filter(None, named.groups())))
    found = _OWN.search(bare)
    if found is None or _NO_JOB.fullmatch(found["id"]):
        return ""
    before, least = bare[: found.start("id")], _MIN_DIGITS_OF_STREAM if found["stream"] else _MIN_DIGITS
    is_other = len(found["job"]) < least or _DATE.search(before) or _SIZE.search(before)
    return "" if is_other else found["id"]
