"""Lines with NCCL in them that are not regular INFO lines, one by one: glued, cut, coloured, warnings, banners.

Each becomes messages: warnings are counted here, INFO messages are collected for `info_kinds`.
"""

from __future__ import annotations

import re
from collections import defaultdict

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines import warn_lines, watchdog
from sweepscope.pipeline.nccl.lines.environment import versions_in
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.nccl.lines.messages import LEAD_CHARS, Message, clean, messages, stripped

MAY_HOLD_FACTS = "|".join(
    (
        r"NCCL (?:INFO|WARN|TRACE|CALL) ",
        "CCL version",
        printed_table.MAY_HOLD_FACTS,
        *(re.escape(word) for word in watchdog.LITERALS),
    )
)
"""A pattern of polars that every line with NCCL and a fact in it matches: few of a training log do."""


class IrregularLines:
    """Reads lines of files, those of each file in order: facts go to `notes`, INFO messages are collected."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._messages: list[tuple[object, ...]] = []
        self._tally: dict[tuple[int, str], int] = defaultdict(int)
        self._processes: dict[tuple[int, str, int], list[int]] = {}

    def line(self, raw: str, line_no: int, position: int) -> None:
        """One physical line with NCCL in it, of the file that `notes` is at. `position` orders lines of all files."""
        text = clean(raw)
        found = list(messages(text))
        if not found:
            self._line_without_prefix(text, line_no)
            if bare := stripped(text):
                self._message(bare, line_no, position)
            return
        lead = text[: found[0].begin]
        if len(lead) > LEAD_CHARS and not printed_table.read_row(lead, line_no, self.notes, is_torn=True):
            printed_table.read_half(lead, line_no, self.notes, is_torn=True)
        for message in found:
            self._count("lines", message.level != "INFO")
            self._count("damaged", message.is_cut)
            self._message(message, line_no, position)
        if any(literal in text for literal in watchdog.LITERALS):
            watchdog.read_watchdog(text, line_no, self.notes)

    def bench_line(self, raw: str, line_no: int) -> None:
        """A line without NCCL in it that may be of a benchmark's table."""
        text = clean(raw)
        if printed_table.read_mark(text, line_no, self.notes):
            return
        if not printed_table.read_row(text, line_no, self.notes, is_torn=False):
            printed_table.read_half(text, line_no, self.notes, is_torn=False)

    def info_lines(self) -> InfoLines:
        """The INFO messages of the lines read so far."""
        return InfoLines.of_messages(self._messages)

    def finish(self) -> None:
        """Add what was counted to `notes`."""
        for (source, name), lines in self._tally.items():
            self.notes.at(source).add("tally", name, lines)
        for (source, host, pid), (lines, clean_lines) in self._processes.items():
            self.notes.at(source).add("process", host, pid, lines, clean_lines)

    def _count(self, name: str, is_counted: bool) -> None:
        if is_counted:
            self._tally[(self.notes.source, name)] += 1

    def _line_without_prefix(self, text: str, line_no: int) -> None:
        """Banners, PyTorch, nccl-tests."""
        for flavour, version in versions_in(text):
            self.notes.add("version", line_no, flavour, version)
        if any(literal in text for literal in watchdog.LITERALS):
            watchdog.read_watchdog(text, line_no, self.notes)
        if "nccl" in text or "_perf" in text or "#" in text:
            printed_table.read_mark(text, line_no, self.notes)
        # A prefix that is missing or garbled.
        self._count("damaged", " NCCL INFO " in text or " NCCL WARN " in text)

    def _message(self, message: Message, line_no: int, position: int) -> None:
        if message.level == "INFO":
            self._messages.append(info_row(message, self.notes.source, line_no, position))
            return
        seen = self._processes.setdefault((self.notes.source, message.host, message.pid), [0, 0])
        seen[0] += 1
        seen[1] += message.is_first
        if message.level == "WARN":
            warn_lines.read_warning(message, line_no, self.notes)


def info_row(message: Message, source: int, line_no: int, position: int) -> tuple[object, ...]:
    """A message in the order of `info_lines.MESSAGES`."""
    return (
        *(position, line_no, source, message.host, message.pid, message.tid),
        *(message.is_first, message.text, message.is_cut),
    )
