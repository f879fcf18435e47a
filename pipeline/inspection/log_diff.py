"""What two logs have and have not in common: lines that are alike but for their numbers count as one form.

Logs are read from where they lie, as `log_window` reads them: only content that the ledger knows, credentials hidden.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweepscope.pipeline.inspection.log_window import Known, read_lines

MOST_LINES = 50_000
"""Lines of each log that are read: start, settings and the first steps are at its head."""

# Hashes and addresses first: they hold digits and letters.
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:[.,:/-]\d+)*(?:e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """Lines that differ in numbers alone: the first of them, its number, and how many there are."""

    line_no: int
    text: str
    lines: int


@dataclass(frozen=True)
class Forms:
    """The forms of a log in the order of their first lines; `is_cut`: it goes on after the lines that were read."""

    by_key: Mapping[str, Form]
    lines: int
    is_cut: bool


def form_of(text: str) -> str:
    """A line without its numbers, hashes and addresses, and with single blanks.

    >>> form_of("step 12/500  loss 3.25e-01 at 0xdeadbeef") == form_of("step 7/500 loss 1.5 at 0x10")
    True
    """
    return " ".join(_VARYING.sub("#", text).split())


def forms(known: Known, *, first: int = 1, last: int | None = None) -> Forms:
    """The forms of the lines from `first` to `last` of a file, of at most MOST_LINES. Raises as `read_lines` does."""
    found: dict[str, Form] = {}
    read = 0
    for number, text in read_lines(known, first=first):
        if last is not None and number > last:
            break
        if read == MOST_LINES:
            return Forms(found, read, is_cut=True)
        read += 1
        key = form_of(text)
        if not key:
            continue
        before = found.get(key)
        found[key] = Form(number, text, 1) if before is None else Form(before.line_no, before.text, before.lines + 1)
    return Forms(found, read, is_cut=False)


def only_in(one: Forms, other: Forms) -> list[Form]:
    """Forms of a log that the other one has no line of, in the order of the log."""
    return [form for key, form in one.by_key.items() if key not in other.by_key]
