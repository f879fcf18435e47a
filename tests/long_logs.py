"""Logs as long as wanted: the steps of a simulated run, counted on, with what a real log has between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

_STEP = re.compile(rb"Step: *\d+ *")
NOISE = b"[default0]:a line that says nothing, as data loaders and compilers print them by the thousand\n" * 60


def longest_steps(sweep: Path) -> list[bytes]:
    """The longest step line of each picotron log of a simulated sweep that has any, the longest first."""
    logs = (path.read_bytes().splitlines(keepends=True) for path in sorted((sweep / "picotron").rglob("*.out")))
    steps = ([line for line in lines if b" Step: " in line] for lines in logs)
    return sorted((max(lines, key=len) for lines in steps if lines), key=len, reverse=True)


def counted_on(line: bytes) -> Iterator[bytes]:
    """Steps from the first on, without end, which say what a step line says."""
    return (_STEP.sub(b"Step: %-9d" % number, line) for number in count(1))


def write_log(log: Path, lines: Iterator[bytes], *, size: int, noise: bytes = NOISE) -> int:
    """Number of steps that are added to a log until it has `size` bytes, with `noise` behind each."""
    steps = 0
    with log.open("ab") as file:
        while file.tell() < size:
            file.write(next(lines) + noise)
            steps += 1
    return steps
