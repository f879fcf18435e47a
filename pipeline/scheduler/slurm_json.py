"""Slurm's jobs as JSON: `sacct --json`, `squeue --json` and `scontrol show job --json`.

Formats: Slurm's data_parser plugins. Since 23.02 a number is an object (`{"set": true, "infinite": false, "number":
5}`) and a state a list; before, both were plain. sacct puts times into an object `time` and steps into their job;
squeue and scontrol name their fields like the columns of squeue. Times are seconds since 1970 and are read as UTC.
Its values are converted to the texts of `sacct -P`, so that both give the same rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.scheduler.cells import REJECTED, rejected_line, rows_of

_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_JOB = re.compile(r'"(?:job_id|allocation_nodes|array_job_id|association|account)"\s*:')
_PRINTED = (
    *("cluster", "jobid", "jobname", "partition", "state", "reason", "exitcode", "submit", "start", "end"),
    *("elapsedraw", "timelimitraw", "restarts", "nnodes", "nodelist", "alloctres", "maxrss", "workdir", "stdout"),
)


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is an object with Slurm's jobs in it."""
    head = "\n".join(lines).lstrip()
    return head.startswith("{") and bool(_JOBS.search(head)) and bool(_JOB.search(head))


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns) and cells.REJECTED rows.

    `line_no` is the number of the record, jobs and their steps in the order of the file: JSON may be a single line.
    """
    text = "\n".join(lines)
    try:
        jobs = json.loads(text)["jobs"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"not a whole list of jobs: {str(error)[:120]}"
        rejected = [rejected_line(1, text[:4_000], reason)]
        yield rows_of({}, [], [])[0], pl.DataFrame(rejected, schema=REJECTED)
        return
    records = [record for job in jobs if isinstance(job, dict) for record in _records(job)]
    cells = {name: [record.get(name, "") for record in records] for name in _PRINTED}
    texts = ["|".join(value for value in record.values() if value) for record in records]
    yield rows_of(cells, list(range(1, len(records) + 1)), texts)


def _records(job: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    record = _job(job)
    yield record
    for step in job.get("steps") or []:
        if isinstance(step, dict):
            yield _step(step, record["jobid"])


def _job(job: Mapping[str, Any]) -> dict[str, str]:
    time, state = _part(job, "time"), job.get("state")
    array = _part(job, "array")
    array_job = _number(array.get("job_id", job.get("array_job_id")))
    task = _number(array.get("task_id", job.get("array_task_id")))
    raw = _number(job.get("job_id"))
    is_task = bool(array_job) and task is not None
    return {
        "cluster": _text(job.get("cluster")),
        "jobid": f"{array_job}_{task}" if is_task else "" if raw is None else str(raw),
        "jobname": _text(job.get("name")),
        "partition": _text(job.get("partition")),
        "state": _word(state.get("current") if isinstance(state, dict) else job.get("job_state")),
        "reason": _text(state.get("reason") if isinstance(state, dict) else job.get("state_reason")),
        "exitcode": _exit(job.get("exit_code")),
        "submit": _moment(time.get("submission", job.get("submit_time"))),
        "start": _moment(time.get("start", job.get("start_time"))),
        "end": _moment(time.get("end", job.get("end_time"))),
        "elapsedraw": _plain(time.get("elapsed")),
        "timelimitraw": _plain(time.get("limit", job.get("time_limit"))),
        "restarts": _plain(job.get("restart_cnt")),
        "nnodes": _plain(job.get("allocation_nodes", job.get("node_count"))),
        "nodelist": _text(job.get("nodes")),
        "alloctres": _text(job.get("tres_alloc_str")) or _tres(_part(job, "tres").get("allocated")),
        "workdir": _text(job.get("working_directory", job.get("current_working_directory"))),
        "stdout": _text(job.get("stdout_expanded", job.get("standard_output"))),
    }


def _step(step: Mapping[str, Any], jobid: str) -> dict[str, str]:
    time, nodes, named = _part(step, "time"), _part(step, "nodes"), _part(step, "step")
    step_id = named.get("id", _part(named, "step").get("id", ""))
    if isinstance(step_id, dict):
        step_id = _plain(step_id.get("step_id"))
    peak = _part(_part(step, "tres"), "requested").get("max")
    memory = [row.get("count") for row in peak or [] if isinstance(row, dict) and row.get("type") == "mem"]
    return {
        "jobid": f"{jobid}.{str(step_id).rsplit('.', 1)[-1].casefold()}",
        "jobname": _text(named.get("name")),
        "state": _word(step.get("state")),
        "exitcode": _exit(step.get("exit_code")),
        "start": _moment(time.get("start")),
        "end": _moment(time.get("end")),
        "elapsedraw": _plain(time.get("elapsed")),
        "nnodes": _plain(nodes.get("count")),
        "nodelist": _text(nodes.get("range")),
        "alloctres": _tres(_part(step, "tres").get("allocated")),
        "maxrss": str(memory[0]) if memory and isinstance(memory[0], int) and memory[0] > 0 else "",
    }


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int | None:
    """A plain number, or that of an object which states whether it is set."""
    if isinstance(value, dict):
        return _number(value.get("number")) if value.get("set") and not value.get("infinite") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _plain(value: object) -> str:
    number = _number(value)
    return "" if number is None else str(number)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _word(value: object) -> str:
    """A state; of several the first is the base state, the others are flags such as COMPLETING."""
    return _text(value[0] if isinstance(value, list) and value else value)


def _moment(value: object) -> str:
    seconds = _number(value)
    if not seconds or seconds >= 2**32:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _exit(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    code, signal = _number(value.get("return_code")), _part(value, "signal")
    killed_by = _number(signal.get("id", signal.get("signal_id")))
    return "" if code is None and killed_by is None else f"{code or 0}:{killed_by or 0}"


def _tres(rows: object) -> str:
    """Text of a list of trackable resources as in sacct: `cpu=2,gres/gpu:a100=16,node=2`."""
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return ",".join(
        f"{row.get('type')}{'/' if row.get('name') else ''}{row.get('name') or ''}={row.get('count')}" for row in found
    )
