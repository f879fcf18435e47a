"""The kinds of scheduler tables, and which of them a text is. A new kind is a module and one line here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.scheduler import flux, kubernetes, lsf, pbs, slurm_json, slurm_sacct, slurm_scontrol

# Blank lines, echoed commands and squeue's time, then a header with a job's id, a record, a pod, or a bare row of a
# table. qstat prints up to two lines of titles above its rule.
_MAY_BE = re.compile(
    rf"(?:[ \t\r]*+(?:{slurm_sacct.ABOVE}[^\n]*+)?\n)*+(?:[^\n]*jobid|[ \t]*name:|[ \t]*\d[\w.+]*+\||\s*\{{|"
    r"[ \t]*(?:namespace[ \t]+)?name[ \t]+ready[ \t]|(?:[^\n]*\n){0,2}[ \t]*job id(?::|[ \t])|[ \t]?job <\d)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:sacct|squeue|scontrol|bjobs|qstat|kubectl|flux[_-]jobs)(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class SchedulerTable:
    """A kind of table: `is_table` looks at the first lines, `read` yields rows of `scheduler_jobs` and rejects."""

    name: str
    is_table: Callable[[Sequence[str]], bool]
    read: Callable[[Iterable[str]], Iterator[tuple[pl.DataFrame, pl.DataFrame]]]


TABLES = (
    SchedulerTable("lsf", lsf.is_table, lsf.read),
    SchedulerTable("flux", flux.is_table, flux.read),
    SchedulerTable("pbs", pbs.is_table, pbs.read),
    SchedulerTable("kubectl-pods", kubernetes.is_pod_list, kubernetes.read_pod_list),
    SchedulerTable("sacct", slurm_sacct.is_table, slurm_sacct.read),
    SchedulerTable("scontrol", slurm_scontrol.is_table, slurm_scontrol.read),
    SchedulerTable("kubectl", kubernetes.is_description, kubernetes.read_descriptions),
    SchedulerTable("slurm-json", slurm_json.is_table, slurm_json.read),
)


def is_named_so(name: str) -> bool:
    """Whether a file name begins with the command of a scheduler.

    >>> [is_named_so(name) for name in ("sacct.txt", "sacct-2024.psv", "train.log")]
    [True, True, False]
    """
    return _NAME.match(name) is not None


def recognise(head: str) -> SchedulerTable | None:
    """The kind of table that a text is, judged by its beginning without the last line, which may be cut."""
    if not _MAY_BE.match(head):  # nearly every log ends here
        return None
    lines = head.splitlines()
    whole = lines[:-1] if len(lines) > 3 else lines
    return next((table for table in TABLES if table.is_table(whole)), None)
