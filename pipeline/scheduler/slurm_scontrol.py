"""Records of Slurm's `scontrol show job`, one block per job or (`-o`) one line per job.

Format: src/api/job_info.c slurm_sprint_job_info: `Key=Value` separated by blanks; a value may hold blanks itself. The
record begins at `JobId=`; of an array task `ArrayJobId=` and `ArrayTaskId=` follow, and JobId is the raw number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from sweepscope.pipeline.scheduler.cells import rows_of, without_commands

_COMMAND = re.compile(r"\s*[$#+>]")
_BEGIN = re.compile(r"\s*JobId=(\d+)\b")
_PAIR = re.compile(r"(?:^|\s)([A-Z][\w:/]*)=((?:(?!\s[A-Z][\w:/]*=).)*)")
_CHUNK_RECORDS = 50_000


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text consists of such records; a log may print one among other lines."""
    printed = without_commands(lines, _COMMAND)
    first = next(printed, "")
    if not _BEGIN.match(first):
        return False
    head = [first, *printed]
    return sum(bool(_PAIR.match(line.strip())) for line in head) >= 0.9 * len(head)


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns) and cells.REJECTED rows.

    `line_no` is that of the record's first line; `text` is that line and the one with the state.
    """
    records: list[tuple[int, dict[str, str], list[str]]] = []
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if _BEGIN.match(line):
            if len(records) >= _CHUNK_RECORDS:
                yield _rows(records)
                records = []
            records.append((number, {}, [line]))
        elif records and "JobState=" in line:
            records[-1][2].append(line)
        if records:
            records[-1][1].update({name.lower(): value.strip() for name, value in _PAIR.findall(line)})
    if records:
        yield _rows(records)


def _rows(records: list[tuple[int, dict[str, str], list[str]]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    for _, values, _ in records:
        values["jobidraw"] = values["jobid"]
        task = values.get("arraytaskid", "")
        if task.isdigit() and "arrayjobid" in values:
            values["jobid"] = f"{values['arrayjobid']}_{task}"
    names = sorted({name for _, values, _ in records for name in values})
    cells = {name: [values.get(name, "") for _, values, _ in records] for name in names}
    return rows_of(cells, [number for number, _, _ in records], [" ".join(text) for _, _, text in records])
