"""Tables of Slurm's `sacct` and `squeue`: delimited (`-P`, `-p`, `--delimiter`), or in columns of fixed width.

Formats: sacct(1), squeue(1). Any choice of columns is read by name. Fixed columns are as wide as the rule of dashes
under the header says; a value that is too long ends in `+`. squeue draws no rule; its last column may hold spaces. A
file may hold several tables one behind the other (`sacct -P >> jobs.txt`), with or without the header in between. A
table without any header (`sacct -nP`) is read as far as its values say themselves what they are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.scheduler import slurm_values as slurm
from sweepscope.pipeline.scheduler.cells import REJECTED, looks_like_header, rows_of

_DELIMITERS = ("|", "\t", ";", ",", "~", "^")
_RULE = re.compile(r"\s*-+(?: +-+)+\s*")
_CHUNK_ROWS = 200_000
_TIMES = {1: ("start",), 2: ("start", "end"), 3: ("submit", "start", "end"), 4: ("submit", "eligible", "start", "end")}


@dataclass
class _Table:
    """Lines under one header: `cut` splits a line into the cells of `names`, or gives None where it does not fit."""

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
    """Rows of `scheduler_jobs` (without the file's own columns) and scheduler_rows.REJECTED rows, table by table.

    Lines are counted from 1. Lines before the first header are left out unless they look like a job's.
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
"""How lines begin that stand above a table: an echoed command behind its prompt, the time that `squeue -l` prints."""

_COMMAND = re.compile(rf"\s*{ABOVE}")


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is such a table from its first line on: a log may print one among other things."""
    own = (line for line in lines if line.strip() and not _COMMAND.match(line))
    first = next(own, "")
    if not (_delimited(first) or _of_words(first) or _is_bare(first)):
        return False  # most files are logs: one line tells
    head = [first, *own]
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
    """Place of the column whose text its user chose, which may hold the mark: Slurm does not escape it."""
    places = [place for place, name in enumerate(names) if name in _FREE_TEXT]
    named = [place for place in places if names[place] in ("jobname", "name")]
    return next(iter(named or (places if len(places) == 1 else [])), None)


def _at_marks(
    mark: str, count: int, free_text: int | None = None, *, is_closed: bool = False
) -> Callable[[str], list[str] | None]:
    """Cells between marks, `is_closed` by one. What is too much belongs to the column at `free_text`."""

    def cut(line: str) -> list[str] | None:
        cells = line.split(mark)
        if not cells[-1].strip() and (len(cells) == count + 1 or is_closed):  # sacct -p ends each line with the mark
            cells.pop()
        if (surplus := len(cells) - count) > 0 and free_text is not None:
            held = slice(free_text, free_text + surplus + 1)
            cells[held] = [mark.join(cells[held])]
        return cells if len(cells) == count else None

    return cut


def _of_words(line: str) -> _Table | None:
    """squeue's table, or the header above a rule, which then takes its place."""
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
        words = line.split()  # the text was moved; that is no harm where no cell is empty
        return words if len(words) == len(spans) else None

    return _Table(names, cut)


def _without_header(lines: list[tuple[int, str]]) -> _Table:
    """A table that has lost its header, its columns named by what their values say; the others stay without a name."""
    cells = [line.split("|") for _, line in lines]
    width = max(len(row) for row in cells)
    columns = [[row[place].strip() for row in cells if place < len(row)] for place in range(width)]
    names = [f"?{place}" for place in range(width)]
    kinds = ((slurm.moment, "time"), (slurm.state, "state"), (slurm.exit_code, "exitcode"), (_clock, "elapsed"))
    names[0] = "jobid"
    times = []
    for place, values in enumerate(columns[1:], 1):
        said = [value for value in values if value not in ("", "Unknown", "None")]
        kind = next((kind for read, kind in kinds if said and all(read(v) is not None for v in said)), None)
        if kind == "time":
            times.append(place)
        elif kind and kind not in names:
            names[place] = kind
        elif said and all("=" in value for value in said):
            names[place] = "alloctres"
    for place, name in zip(times, _TIMES.get(len(times), ()), strict=False):
        names[place] = name
    table = _Table(tuple(names), _at_marks("|", width))
    for number, line in lines:
        table.add(number, line)
    return table


def _clock(value: str) -> int | None:
    return slurm.seconds(value) if ":" in value else None
