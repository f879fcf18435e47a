"""Jobs of Flux, from `flux jobs` (`-a` for those that have ended).

Format: flux-core src/cmd/flux-jobs.py, its default format, and flux-jobs(1) for the states. Times are Flux standard
durations: a number and its unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from sweepscope.pipeline.scheduler.cells import REJECTED, conform_rows, rejected_line, without_commands
from sweepscope.pipeline.text import host_list

_COLUMNS = ("JOBID", "USER", "NAME", "ST", "NTASKS", "NNODES", "TIME", "INFO")
_COMMAND = re.compile(r"\s*(?:[$#+>]|flux\b)")
_STATES = (
    {"CD": "completed", "F": "failed", "CA": "cancelled", "TO": "timeout"}
    | {"R": "running", "C": "running"}
    | {"D": "pending", "P": "pending", "S": "pending"}
)
"""status_abbrev of flux-jobs(1) -> word of JOB_STATE."""
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is such a list from its first line on."""
    printed = without_commands(lines, _COMMAND)
    return tuple(next(printed, "").split())[:7] in (_COLUMNS[:7], ("JOBID", "QUEUE", *_COLUMNS[1:6]))


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns), and rejects: lines that do not fit the header."""
    names: list[str] = []
    rows: list[dict[str, object]] = []
    odd: list[dict[str, object]] = []
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if line.startswith("JOBID"):
            names = line.split()
        elif line and not _COMMAND.match(line):
            # The last column may hold blanks, or nothing: a job that waits has no hosts.
            cells = dict(zip(names, line.split(maxsplit=max(len(names) - 1, 0)), strict=False))
            if state := _STATES.get(cells.get("ST", "")):
                rows.append(_row(cells, state, number, line))
            else:
                odd.append(rejected_line(number, line, "not a state of Flux", column="job_state"))
    yield conform_rows(rows), pl.DataFrame(odd, schema=REJECTED)


def _row(cells: dict[str, str], state: str, number: int, text: str) -> dict[str, object]:
    nodes, hosts = cells.get("NNODES", ""), host_list.hosts(cells.get("INFO", ""))
    return {
        "scheduler": "flux",
        "job_id": cells["JOBID"],
        "job_name": cells.get("NAME"),
        "job_state": state,
        "job_partition": cells.get("QUEUE"),
        "num_nodes": int(nodes) if nodes.isdecimal() else None,
        "elapsed_s": seconds(cells.get("TIME", "")),
        "hosts": ", ".join(hosts) if hosts else None,
        "text": text,
        "line_no": number,
    }


def seconds(text: str) -> int | None:
    """A duration in whole seconds.

    >>> seconds("1.204h"), seconds("3.112s"), seconds("-")
    (4334, 3, None)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|[smhd])", text)
    return round(float(found[1]) * _UNITS_S[found[2]]) if found else None
