"""Jobs of PBS, from the lists of `qstat` (plain, `-a`, `-u`, `-x`) and the records of `qstat -f`.

Format: OpenPBS src/cmds/qstat.c; Torque's is alike. Under a rule of dashes a list is of fixed width; a job's number is
followed by its server's name, often cut. A record begins with `Job Id:`, its lines are `name = value`, and a line that
begins with a tab continues the value before. A list shows that a job has finished (F, C) but not how; its record has
the exit status: 256 plus a signal, or PBS's own negative codes (pbs_ifl.h JOB_EXEC_KILL_...).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import polars as pl

from sweepscope.pipeline.scheduler import slurm_values
from sweepscope.pipeline.scheduler.cells import REJECTED, conform_rows

_RECORD = re.compile(r"Job Id: *(\S+)\s*$")
_FIELD = re.compile(r" {4}(\S+) = (.*)$")
_RULE = re.compile(r"\s*-+(?: +-+)+\s*")
_JOB = re.compile(r"(\d+(?:\[\d*\])?)(?:\..*)?\*?$")
_LONG = ("id", "user", "queue", "name", "session", "nodes", "tasks", "memory", "limit", "state", "elapsed")
_SHORT = ("id", "name", "user", "used", "state", "queue")
_STATES = (
    {"Q": "pending", "H": "pending", "W": "pending", "T": "pending", "M": "pending"}
    | {"B": "running", "R": "running", "E": "running", "S": "suspended", "U": "suspended"}
    | {"F": "unknown", "C": "unknown", "X": "unknown"}
)
_KILLED = {-27: "out_of_memory", -28: "out_of_memory", -29: "timeout", -30: "timeout", -24: "failed", -25: "failed"}
_SIGTERM, _OWN_SIGNALS = 15, 256


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is one of these."""
    return any(_RECORD.match(line) for line in lines[:3]) or any(
        re.match(r"\s*Job [Ii][Dd] ", line) and _RULE.fullmatch(below.rstrip("\r\n"))
        for line, below in itertools.pairwise(lines)
    )


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns); there are no rejects, as lists have titles."""
    records: list[tuple[int, str, dict[str, str]]] = []
    rows: list[dict[str, object]] = []
    spans: list[tuple[int, int]] = []
    last = ""
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if record := _RECORD.match(line):
            records.append((number, record[1], {}))
            spans = []
        elif records and (field := _FIELD.match(line)):
            last = field[1]
            records[-1][2][last] = field[2]
        elif records and line.startswith("\t"):
            records[-1][2][last] = records[-1][2].get(last, "") + line.strip()
        elif _RULE.fullmatch(line):
            spans = [found.span() for found in re.finditer("-+", line)]
        elif spans and (row := _listed(line, spans, number)):
            rows.append(row)
    rows += [_recorded(number, name, fields) for number, name, fields in records]
    yield conform_rows(rows), pl.DataFrame(schema=REJECTED)


def _listed(line: str, spans: Sequence[tuple[int, int]], number: int) -> dict[str, object] | None:
    names = {len(_LONG): _LONG, len(_SHORT): _SHORT}.get(len(spans))
    job = _JOB.match(line.split(maxsplit=1)[0]) if line.strip() else None
    if names is None or job is None:
        return None
    words = line.split()
    cells = words if len(words) == len(names) else [line[start:end].strip() for start, end in spans]
    texts = dict(zip(names, cells, strict=True))
    nodes = texts.get("nodes", "")
    return {
        "scheduler": "pbs",
        "job_id": job[1],
        "job_name": texts["name"],
        "job_partition": texts["queue"],
        "job_state": _STATES.get(texts["state"]),
        "num_nodes": int(nodes) if nodes.isdecimal() else None,
        "elapsed_s": _clock(texts.get("elapsed", "")),
        "time_limit_s": _clock(texts.get("limit", "")),
        "text": line.strip(),
        "line_no": number,
    }


def _recorded(number: int, name: str, fields: dict[str, str]) -> dict[str, object]:
    code = _whole(fields.get("Exit_status", fields.get("exit_status", "")))
    exit_code, exit_signal = _exit(code)
    job, nodes = _JOB.match(name), fields.get("Resource_List.nodect", "")
    hosts = list(dict.fromkeys(part.split("/")[0] for part in fields.get("exec_host", "").split("+") if part))
    gpus = _whole(fields.get("Resource_List.ngpus", ""))
    used = re.fullmatch(r"(\d+)(k?)b", fields.get("resources_used.mem", ""))
    out = fields.get("Output_Path", "").split(":", 1)[-1]
    return {
        "scheduler": "pbs",
        "job_id": job[1] if job else name,
        "job_name": fields.get("Job_Name"),
        "job_partition": fields.get("queue"),
        "job_state": _ended(code) or _STATES.get(fields.get("job_state", "")),
        "job_reason": fields.get("comment"),
        "exit_code": exit_code,
        "exit_signal": exit_signal,
        "submitted_at": _moment(fields.get("ctime", "")),
        "started_at": _moment(fields.get("stime", "")),
        "elapsed_s": slurm_values.seconds(fields.get("resources_used.walltime", "")),
        "time_limit_s": slurm_values.seconds(fields.get("Resource_List.walltime", "")),
        "num_nodes": int(nodes) if nodes.isdecimal() else None,
        "num_gpus": gpus or None,
        "hosts": ", ".join(hosts) or None,
        "stdout_path": out or None,
        "host_mem_peak_bytes": int(used[1]) * (1024 if used[2] else 1) if used else None,
        "text": f"Job Id: {name}, job_state = {fields.get('job_state')}, Exit_status = {code}",
        "line_no": number,
    }


def _exit(code: int | None) -> tuple[int | None, int | None]:
    """Exit code and signal; a negative status is PBS's own, not that of a process."""
    if code is None or code < 0:
        return None, None
    return (0, code - _OWN_SIGNALS) if code > _OWN_SIGNALS else (code, 0)


def _ended(code: int | None) -> str | None:
    if code is None or code == 0:
        return None if code is None else "completed"
    return "cancelled" if code == _OWN_SIGNALS + _SIGTERM else _KILLED.get(code, "failed")


def _clock(text: str) -> int | None:
    """`06:00`, hours and minutes."""
    found = re.fullmatch(r"(\d{1,4}):(\d\d)(?::(\d\d))?", text)
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0) if found else None


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None
