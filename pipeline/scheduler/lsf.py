"""Jobs of LSF, from the table of `bjobs` or its descriptions (`-l`).

Format: lsf bjobs(1): columns of fixed width under a header, in any choice (`-o`); default and wide (`-w`), and sites'
own defaults. STAT is the state. Times have no year, so none is read. Hosts are printed as `8*node07`, further hosts of
a job in lines of their own. Values that do not fit their column are cut. A description is wrapped, within words, to
lines of 80 letters; continuation lines are indented.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from sweepscope.pipeline.scheduler.cells import REJECTED, conform_rows, rejected_line, without_commands

_STATES = (
    {"DONE": "completed", "EXIT": "failed", "RUN": "running", "PEND": "pending", "WAIT": "pending"}
    | {"PSUSP": "suspended", "USUSP": "suspended", "SSUSP": "suspended", "UNKWN": "unknown", "ZOMBI": "unknown"}
    | {"FWD_PEND": "pending", "PROV": "pending", "PDONE": "completed", "PERR": "failed"}
)
"""bjobs(1), STAT -> word of JOB_STATE."""
_COMMAND = re.compile(r"\s*(?:[$#+>]|bjobs\b)")
_HOST = re.compile(r"(?:\d+\*)?([\w.-]+)")
_RECORD = re.compile(r"\s?Job <(\d+(?:\[\d+\])?)>, ")
_ENDED = (
    {"RUNLIMIT": "timeout", "DEADLINE": "timeout", "CPULIMIT": "timeout", "MEMLIMIT": "out_of_memory"}
    | {"SWAP": "out_of_memory", "PREEMPT": "preempted", "REQUEUE_OWNER": "requeued", "REQUEUE_ADMIN": "requeued"}
    | {"OWNER": "cancelled", "ADMIN": "cancelled", "FORCE_OWNER": "cancelled", "FORCE_ADMIN": "cancelled"}
)
"""LSF's termination reasons (lsbatch.h TERM_...) that are more specific than a failed job."""
_NAMES = {"JOB_NAME": "job_name", "QUEUE": "job_partition"}


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is such a list from its first line on."""
    printed = without_commands(lines, _COMMAND)
    first = next(printed, "")
    return _is_header(first) or _RECORD.match(first) is not None


def _is_header(line: str) -> bool:
    return {"JOBID", "STAT"} <= set(line.split()) and line.split()[:1] == ["JOBID"]


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns), and rejects: lines without a known state."""
    spans: list[tuple[str, int, int | None]] = []
    records: list[tuple[int, list[str]]] = []
    rows: list[dict[str, object]] = []
    odd: list[dict[str, object]] = []
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if _RECORD.match(line):
            records.append((number, [line]))
        elif _is_header(line):
            spans = _spans(line)
        elif records and not spans:
            records[-1][1].append(line.strip() if line.startswith("   ") else f"\n{line}")
        elif re.match(r"\s*\d+(?:\[\d+\])?\s", line):
            cells = _cells(line, spans)
            if state := _STATES.get(cells.get("STAT", "")):
                rows.append(_row(cells, state, number, line.strip()))
            else:
                odd.append(rejected_line(number, line, "not a state of LSF", column="job_state"))
        elif rows and (more := _HOST.fullmatch(line.strip())) and rows[-1]["hosts"]:
            rows[-1]["hosts"] = f"{rows[-1]['hosts']}, {more[1]}"
    rows += [_described(number, "".join(parts)) for number, parts in records]
    for row in rows:
        row["num_nodes"] = str(row["hosts"]).count(", ") + 1 if row["hosts"] else None
    yield conform_rows(rows), pl.DataFrame(odd, schema=REJECTED)


def _described(number: int, text: str) -> dict[str, object]:
    def field(pattern: str) -> str | None:
        found = re.search(pattern, text)
        return found[1] if found else None

    status, term, code = field(r"Status <(\w+)>"), field(r"\bTERM_(\w+)"), field(r"Exited with exit code (\d{1,3})\b")
    hosts = re.findall(r"<(?:\d+\*)?([\w.-]+)>", field(r"on Host\(s\) ((?:<[^>]+> ?)+)") or "")
    ended = _ENDED.get(term or "") if status == "EXIT" else None
    return {
        "scheduler": "lsf",
        "job_id": field(r"Job <([^>]+)>"),
        "job_name": field(r"Job Name <([^>]*)>"),
        "job_partition": field(r"Queue <([^>]*)>"),
        "job_state": ended or _STATES.get(status or ""),
        "job_reason": f"TERM_{term}" if term else None,
        "exit_code": int(code) if code else None,
        "hosts": ", ".join(dict.fromkeys(hosts)) or None,
        "text": " ".join(text.split()),
        "line_no": number,
    }


def _spans(header: str) -> list[tuple[str, int, int | None]]:
    """Name, begin and end of each column."""
    starts = [(found[0], found.start()) for found in re.finditer(r"\S+", header)]
    ends = [start for _, start in starts[1:]]
    return [(name, start, end) for (name, start), end in itertools.zip_longest(starts, ends)]


def _cells(line: str, spans: Sequence[tuple[str, int, int | None]]) -> dict[str, str]:
    """Values by column. Where one overflows its column, only the first three words are known: id, user and state."""
    if all(line[start - 1 : start].strip() == "" for _, start, _ in spans[1:]):
        return {name: line[start:end].strip() for name, start, end in spans}
    words = line.split()
    names = [name for name, _, _ in spans]
    known = len(names) if len(words) == len(names) else 3
    return dict(zip(names[:known], words[:known], strict=False))


def _row(cells: Mapping[str, str], state: str, number: int, text: str) -> dict[str, object]:
    host = _HOST.fullmatch(cells.get("EXEC_HOST", ""))
    texts = {column: cells.get(name, "").strip("*- ") or None for name, column in _NAMES.items()}
    return {
        "scheduler": "lsf",
        "job_id": cells["JOBID"],
        "job_state": state,
        "text": text,
        "line_no": number,
        "hosts": host[1] if host and host[1] != "-" else None,
        **texts,
    }
