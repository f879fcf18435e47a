"""Tables of nccl-tests and rccl-tests (src/common.cu, src/util.cu): rows, headers, averages.

    size count type [redop] [root]  time algbw busbw #wrong  [time algbw busbw #wrong]

Times in microseconds, bandwidths in GB/s (1e9). Old tables lack `root`; either half may be left out; per-iteration
columns (min, max, p99, cv) and timestamps may follow. Until 2019 the columns were called
`bytes N type op time algbw busbw res` and times were in milliseconds. Pasted as Markdown, comments lose their `#`.
With NCCL_DEBUG, NCCL's lines break rows in two: the first half is then glued to a prefix and the second half is a
separate line.
"""

from __future__ import annotations

import re

from sweepscope.pipeline.nccl.facts import Notes

_TYPES = (
    "int8|uint8|int32|uint32|int64|uint64|half|float|double|bfloat16|f8e4m3|f8e5m2|fp8_e4m3|fp8_e5m2|float16|float32|"
    "float64|char|int"
)
ROW = (
    rf"(?:^|[\s>:)\]|])(?P<size>\d{{1,18}})\s+(?P<count>\d{{1,18}})\s+(?P<type>{_TYPES})"
    r"(?:\s+(?P<redop>sum|prod|max|min|avg|all|mulsum|none))?(?P<figures>(?:\s+[-\dX].*)?)\s*$"
)
TORN_HALF = r"(?:^|[>:)\]])\s+(?P<figures>\d[\d.e+]*(?:\s+\d[\d.e+]*){2}(?P<wrong>\s+(?:\d[\d.e+-]*|N/A))?)\s*$"
"""A row, and the half that was torn off one: in the syntax of both Python's `re` and polars, like those below."""
_ROW, _TORN_HALF = re.compile(ROW), re.compile(TORN_HALF)
_MARK = r"#|_perf|rccl-tests|Avg bus bandwidth|nThread [0-9]|Rank +[0-9]|  (?:size|bytes)  "


def _tabular(types: str) -> str:
    return rf"  (?:(?:{types}|size)  |Rank +[0-9])|Avg bus bandwidth|nThread [0-9]|-library=|_perf\n"


TABULAR, TABULAR_BUT_DIGITS = _tabular(_TYPES), _tabular(re.sub("[0-9]", "[0-9]", _TYPES))
"""Files with such a line may hold rows: types, the header, ranks, the average, the program. The same of any digits."""
CANDIDATE = (
    rf"{_MARK}|  .*\s(?:{_TYPES})\s|\s(?:{_TYPES})\s.*  |[0-9]\s[0-9]+\s(?:{_TYPES})\s[a-z0-9-]|"
    r"^[^0-9]*[0-9.]+\s+[0-9.]+\s+[0-9.]+\s"
)
"""Lines worth a look in such a file: comments, and columns with a type or three numbers, which a page where they were
pasted may have set closer together."""
OPS = (
    {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}
    | {"broadcast": "Broadcast", "reduce": "Reduce", "alltoall": "AlltoAll", "alltoallv": "AlltoAllv"}
    | {"sendrecv": "SendRecv", "gather": "Gather", "scatter": "Scatter", "hypercube": "Hypercube"}
    | {"all_reduce_bias": "AllReduce", "reduce_scatter_bias": "ReduceScatter"}
)
_PROGRAM = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(OPS, key=len, reverse=True))})_perf(?:_mpi)?\b")
_LIBRARY = re.compile(r"[nr]ccl-library=(\d{5,6})")
_RCCL = re.compile(r"(rccl)-(?:library=|tests[ :])")
_THREADS = re.compile(r"nThread (\d{1,9}) nGpus (\d{1,9}) ")
# rccl-tests prints the function, too: [0000:2f:00.0].
_RANK = re.compile(
    r"Rank\s+(\d{1,9}) (?:Group\s+\d+ )?(?:Pid\s+\d+ )?on\s+(\S+) device\s+\d+ \[[0-9a-fA-Fx:.]*\]?\s*(.*)"
)
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*([\d.e+-]+|nan|inf)")
_MAY_BE_MARK = re.compile(_MARK)
MAY_HOLD_FACTS = "|".join(
    (
        *(r"Rank.+ on.+ device.+\[", "Avg bus bandwidth", "size.+count.+type", "bytes.+N.+type", "nThread "),
        *("ccl-library=", "rccl-tests", rf"(?:{'|'.join(OPS)})_perf", rf"\s(?:{_TYPES})(?:\s|$)"),
        TORN_HALF.replace("?P<figures>", "?:"),
    )
)
"""A pattern of polars that every mark, row or torn half matches: few candidates do."""
_COLUMNS = re.compile(r"(?:^|[#\s])((?:size\s+count|bytes\s+N)\s+type\s.*)")
_FIGURES_OF_A_ROW = 3
"""Least number of figures of a row without a reduction; one with a reduction may have been cut before its first."""


def read_row(text: str, line_no: int, notes: Notes, *, is_torn: bool) -> bool:
    """A row, or its first half. `is_torn`: an NCCL message begins where the row breaks off."""
    found = _ROW.search(text)
    if found is None or not (found["redop"] or is_torn or len(found["figures"].split()) >= _FIGURES_OF_A_ROW):
        return False
    row = (int(found["size"]), int(found["count"]), found["type"], found["redop"], found["figures"].strip())
    notes.add("bench_row", line_no, *row, is_torn)
    return True


def read_half(text: str, line_no: int, notes: Notes, *, is_torn: bool) -> bool:
    """What may be a half of a torn row: four numbers and nothing else (three, where the fourth is glued to NCCL's)."""
    found = _TORN_HALF.search(text)
    if found is None or not (found["wrong"] or is_torn):
        return False
    notes.add("bench_half", line_no, found["figures"])
    return True


def read_mark(text: str, line_no: int, notes: Notes) -> bool:
    """Headers, averages, the program's name, the library's version, the devices in use."""
    if not _MAY_BE_MARK.search(text):
        return False
    if found := _RANK.search(text):
        notes.add("bench_mark", line_no, "rank", f"{found[1]} {found[2]} {found[3].strip()[:80]}")
    elif found := _AVERAGE.search(text):
        notes.add("bench_mark", line_no, "average", found[1])
    elif found := _COLUMNS.search(text):
        notes.add("bench_mark", line_no, "header", found[1].strip())
    else:
        marks = [("threads", _THREADS), ("library", _LIBRARY), ("rccl", _RCCL), ("program", _PROGRAM)]
        hits = [(mark, found) for mark, pattern in marks if (found := pattern.search(text))]
        for mark, hit in hits:
            notes.add("bench_mark", line_no, mark, hit[1])
        return bool(hits)
    return True
