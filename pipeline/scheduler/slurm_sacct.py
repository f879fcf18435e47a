"""Tables of Slurm's `sacct` and `squeue`: delimited (`-P`, `-p`, `--delimiter`), or in columns of fixed width.

Formats: sacct(1), squeue(1). Any choice of columns is read by name. The rule of dashes under the header gives the
widths of fixed columns; a value that is too long ends in `+`. squeue draws no rule; its last column may hold spaces. A
file may hold several tables one after the other (`sacct -P >> jobs.txt`), with or without the header in between. Of a
table without any header (`sacct -nP`) the columns are read whose values identify them. Slurm does not quote or escape
values, so the csv module does not apply.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.scheduler import slurm_values as slurm
from sweepscope.pipeline.scheduler.cells import REJECTED, looks_like_header, rows_of, without_commands

_DELIMITERS = ("|", "\t", ";", ",", "~", "^")
_RULE = re.compile(r"\s*-+(?: +-+)+\s*")
_CHUNK_ROWS = 200_000
_TIMES = {1: ("start",), 2: ("start", "end"), 3: ("submit", "start", "end"), 4: ("submit", "eligible", "start", "end")}


@dataclass
class _Table:
    """Lines under one header; `cut` splits a line into the cells of `names`, or returns None if it does not fit."""

    names: tuple[str, ...]
    cut: Callable[[str], list[str] | None]
    line_no: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)
    misfits: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, line: str) -> None:
        cells = self.cut(line)
        if cells is None:
            self.misfits.append((number, line))
        else:
            self.line_no.append(number)
            self.text.append(line)
            self.cells.append(cells)

    def rows(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        columns = dict(zip(self.names, zip(*self.cells, strict=True), strict=True)) if self.cells else {}
        rows, rejected = rows_of(columns, self.line_no, self.text)
        reason = f"does not have the {len(self.names)} columns of the header above it"
        odd = [{"line_no": number, "column": None, "reason": reason, "raw": line} for number, line in self.misfits]
        return rows, pl.concat([rejected, pl.DataFrame(odd, schema=REJECTED)])


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns) and cells.REJECTED rows, table by table.

    Lines are counted from 1. Lines before the first header are left out unless they look like those of a job.
    """
    table: _Table | None = None
    previous = ""
    orphans: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if not line.strip():
            continue
        if _RULE.fullmatch(line):
            if looks_like_header(previous.split()):
                table = _of_fixed_width(previous, line)
            continue
        new = (_delimited(line) or _of_words(line)) if "jobid" in line.lower() else None
        if new is not None:
            if table is not None:
                yield table.rows()
            table = new
        elif table is not None:
            table.add(number, line)
            if len(table.cells) >= _CHUNK_ROWS:
                yield table.rows()
                table = _Table(table.names, table.cut)
        elif re.match(r"\s*\d+(?:[_.]\w+)*[|\s,;]", line):
            orphans.append((number, line))
        previous = line
    if table is not None:
        yield table.rows()
    if orphans:
        yield _without_header(orphans).rows()


ABOVE = r"(?:[$#+>]|sacct|squeue|\[[^\]\n]*\][$#>%] |[\w.-]++@\S*[$#>%] |[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d)"
"""Beginning of lines above a table: an echoed command after its prompt, the time that `squeue -l` prints."""

_COMMAND = re.compile(rf"\s*{ABOVE}")


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is such a table from its first line on: a log may print one among other lines."""
    printed = without_commands(lines, _COMMAND)
    first = next(printed, "")
    if not (_delimited(first) or _of_words(first) or _is_bare(first)):
        return False  # as nearly all logs
    head = [first, *printed]
    if _delimited(head[0]) or _of_words(head[0]):
        found = list(read(head))
        return sum(rows.height for rows, _ in found) >= 0.5 * (
            len(head) - 1 - bool(_RULE.fullmatch("".join(head[1:2])))
        )
    return len(head) > 1 and all(_is_bare(line) for line in head)


def _is_bare(line: str) -> bool:
    cells = line.rstrip("\r\n").split("|")
    return len(cells) > 2 and slurm.job_and_step(cells[0])[0] is not None and any(map(slurm.state, cells[1:]))


def _delimited(line: str) -> _Table | None:
    for mark in _DELIMITERS:
        names = [name.strip().lower() for name in line.split(mark)]
        if len(names) > 1 and looks_like_header(names):
            printed = tuple(names[: len(names) - (not names[-1])])
            return _Table(printed, _at_marks(mark, len(printed), _free_text(printed), is_closed=not names[-1]))
    return None


_FREE_TEXT = ("jobname", "name", "comment", "admincomment", "systemcomment", "submitline", "workdir")


def _free_text(names: tuple[str, ...]) -> int | None:
    """Index of the column with a text of the user's, which may hold the delimiter."""
    indices = [index for index, name in enumerate(names) if name in _FREE_TEXT]
    named = [index for index in indices if names[index] in ("jobname", "name")]
    return next(iter(named or (indices if len(indices) == 1 else [])), None)


def _at_marks(
    mark: str, count: int, free_text: int | None = None, *, is_closed: bool = False
) -> Callable[[str], list[str] | None]:
    """A function that splits a line at marks, `is_closed` by one; surplus cells belong to the column `free_text`."""

    def cut(line: str) -> list[str] | None:
        cells = line.split(mark)
        if not cells[-1].strip() and (len(cells) == count + 1 or is_closed):  # sacct -p ends each line with the mark
            cells.pop()
        if (surplus := len(cells) - count) > 0 and free_text is not None:
            broken = slice(free_text, free_text + surplus + 1)
            cells[broken] = [mark.join(cells[broken])]
        return cells if len(cells) == count else None

    return cut


def _of_words(line: str) -> _Table | None:
    """The table under squeue's header; one with a rule under it is replaced by `_of_fixed_width`."""
    names = [name.lower() for name in line.split()]
    if not looks_like_header(names) or not all(re.fullmatch(r"[a-z_]+(?:\(reason\))?", name) for name in names):
        return None

    def cut(row: str) -> list[str] | None:
        cells = row.split(maxsplit=len(names) - 1)
        return cells if len(cells) == len(names) else None

    return _Table(tuple(names), cut)


def _of_fixed_width(header: str, rule: str) -> _Table:
    spans = [match.span() for match in re.finditer("-+", rule)]
    names = tuple(header[start:end].strip().lower() for start, end in spans)

    def cut(line: str) -> list[str] | None:
        gaps = "".join(line[end:start] for (_, end), (start, _) in itertools.pairwise(spans))
        if not gaps.strip() and not line[spans[-1][1] :].strip():
            return [line[start:end].strip() for start, end in spans]
        words = line.split()  # the text was moved, which does no harm where no cell is empty
        return words if len(words) == len(spans) else None

    return _Table(names, cut)


def _without_header(lines: list[tuple[int, str]]) -> _Table:
    """A table without a header; its columns are named by the form of their values, the others stay nameless."""
    cells = [line.split("|") for _, line in lines]
    width = max(len(row) for row in cells)
    columns = [[row[index].strip() for row in cells if index < len(row)] for index in range(width)]
    names = [f"?{index}" for index in range(width)]
    kinds = ((slurm.moment, "time"), (slurm.state, "state"), (slurm.exit_code, "exitcode"), (_clock, "elapsed"))
    names[0] = "jobid"
    times = []
    for index, values in enumerate(columns[1:], 1):
        known = [value for value in values if value not in ("", "Unknown", "None")]
        kind = next((kind for read, kind in kinds if known and all(read(v) is not None for v in known)), None)
        if kind == "time":
            times.append(index)
        elif kind and kind not in names:
            names[index] = kind
        elif known and all("=" in value for value in known):
            names[index] = "alloctres"
    for index, name in zip(times, _TIMES.get(len(times), ()), strict=False):
        names[index] = name
    table = _Table(tuple(names), _at_marks("|", width))
    for number, line in lines:
        table.add(number, line)
    return table


def _clock(value: str) -> int | None:
    return slurm.seconds(value) if ":" in value else None
