"""NCCL lines one by one: every kind, whatever stands before, behind or in the middle of it.

`info` reads the regular ones of a large block many times faster; here is what each of them means.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import polars as pl

from sweepscope.pipeline.nccl.bench import printed_table
from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines import collectives, devices, graphs, init, transports, tuning, warn_lines, watchdog
from sweepscope.pipeline.nccl.lines.messages import VIA, Message, messages, stripped

MAX_LINE_CHARS = 16_384
"""NCCL cuts its messages at 1,024 bytes; glued lines are longer. What stands behind is not looked at."""

LEAD_CHARS = 20
"""A longer text before a message may be the beginning of a table's row."""

ESCAPES = r"\x1b\[[0-9;?]*[ -/]*[@-~]"
_ESCAPES = re.compile(ESCAPES)
# 2.20.5+cuda12.4, 2.12.6azure3+cuda11.4, RCCL's 2.22.3-HEAD:271856d; ranks glue their banners to one another.
_VERSION = re.compile(r"([NR]CCL) version ?:? ?(\d+\.\d+(?:\.\d+)?(?:(?![NR]CCL )[\w.+:-])*)")
TELLING = "|".join(
    (
        r"NCCL (?:INFO|WARN|TRACE|CALL) ",
        "CCL version",
        printed_table.TELLING,
        *(re.escape(word) for word in watchdog.LITERALS),
    )
)
"""What every line with NCCL in it holds that tells something, for polars: of training logs, few do."""
SETTING = " set by environment to "
_ENV = re.compile(r"([NR]CCL_\w+) set by environment to (.*?)\.?\Z")


class LineReader:
    """Reads the lines of files, those of each file in order, and says what they say to `notes`.

    Attributes:
        inits: for each line that begins or ends a communicator: its place (as given), host, process and thread.
    """

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.inits: list[tuple[int, str, int, int]] = []
        self._graphs: list[tuple[object, ...]] = []
        self._tally: dict[tuple[int, str], int] = defaultdict(int)
        self._processes: dict[tuple[int, str, int], list[int]] = {}

    def line(self, raw: str, line_no: int, place: int) -> None:
        """One physical line with NCCL in it, of the file that `notes` is at. `place` orders lines of all files."""
        text = clean(raw)
        found = list(messages(text))
        if not found:
            self._plain_line(text, line_no)
            if bare := stripped(text):
                self._told(bare, line_no, place)
            return
        lead = text[: found[0].begin]
        if len(lead) > LEAD_CHARS and not printed_table.read_row(lead, line_no, self.notes, is_torn=True):
            printed_table.read_rest(lead, line_no, self.notes, is_torn=True)
        for message in found:
            self._message(message, line_no, place)
        if any(literal in text for literal in watchdog.LITERALS):
            watchdog.read_watchdog(text, line_no, self.notes)

    def bench_line(self, raw: str, line_no: int) -> None:
        """A line without NCCL in it that may be of a benchmark's table."""
        text = clean(raw)
        if printed_table.read_mark(text, line_no, self.notes):
            return
        if not printed_table.read_row(text, line_no, self.notes, is_torn=False):
            printed_table.read_rest(text, line_no, self.notes, is_torn=False)

    def info(self, message: Message, line_no: int, place: int) -> bool:
        """Whether the text of an INFO message told something."""
        for literal, read in _READERS:
            if literal in message.text:
                return read(self, message, line_no, place)
        return False

    def finish(self) -> None:
        """Hand over what was counted, and what is read together."""
        if self._graphs:
            graphs.add_singly(pl.DataFrame(self._graphs, schema=graphs.SINGLE, orient="row"), self.notes)
        for (source, name), lines in self._tally.items():
            if lines:
                self.notes.at(source).add("tally", name, lines)
        for (source, host, pid), (lines, clean_lines) in self._processes.items():
            self.notes.at(source).add("process", host, pid, lines, clean_lines)

    def _count(self, name: str, lines: int = 1) -> None:
        self._tally[(self.notes.source, name)] += lines

    def _plain_line(self, text: str, line_no: int) -> None:
        """A line with NCCL in it and no prefix: banners, PyTorch, nccl-tests."""
        for version in _VERSION.finditer(text):
            self.notes.add("version", line_no, version[1], version[2].rstrip(".:-"))
        if any(literal in text for literal in watchdog.LITERALS):
            watchdog.read_watchdog(text, line_no, self.notes)
        if "nccl" in text or "_perf" in text or "#" in text:
            printed_table.read_mark(text, line_no, self.notes)
        if " NCCL INFO " in text or " NCCL WARN " in text:
            self._count("damaged")  # its prefix is missing or garbled

    def _message(self, message: Message, line_no: int, place: int) -> None:
        self._count("lines")
        if not self._told(message, line_no, place):
            self._count("other")
        self._count("damaged", message.is_cut)

    def _told(self, message: Message, line_no: int, place: int) -> bool:
        """Whether a message told something, or is of a kind that is not looked into."""
        seen = self._processes.setdefault((self.notes.source, message.host, message.pid), [0, 0])
        seen[0] += 1
        seen[1] += message.is_first
        if message.level == "WARN":
            warn_lines.read_warning(message, line_no, self.notes)
        return message.level != "INFO" or self.info(message, line_no, place)

    def _graph(self, message: Message, line_no: int, _place: int) -> bool:
        """A ring or trees. Each line is a group of its own, since nothing tells yet which communicator it is of."""
        told = graphs.read_graph(message)
        if told:
            self._graphs.append((self.notes.source, line_no, message.host, message.pid, message.tid, *told))
        return told is not None

    def _ring(self, message: Message, line_no: int, place: int) -> bool:
        """The whole ring of a channel; the first channel's tells the number of channels, too."""
        is_graph = self._graph(message, line_no, place)
        return transports.read_ring(message, line_no, self.notes) or is_graph

    def _init(self, message: Message, line_no: int, place: int) -> bool:
        """A line of a communicator's life; the thread's links behind it are of the next one."""
        if not init.read_init(message, line_no, self.notes):
            return False
        self.inits.append((place, message.host, message.pid, message.tid))
        return True


def clean(raw: str) -> str:
    """A line without its end and without colours, no longer than what is looked at."""
    text = raw[:MAX_LINE_CHARS].rstrip("\r\n")
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def read_setting(text: str, line_no: int, notes: Notes, *, lines: int = 1) -> bool:
    """A variable of the environment; `lines` say the same."""
    if found := _ENV.match(text):
        notes.count("env", line_no, found[1], found[2][:200], lines=lines)
    return found is not None


def _setting(message: Message, line_no: int, notes: Notes) -> bool:
    return read_setting(message.text, line_no, notes)


def _version(message: Message, line_no: int, notes: Notes) -> bool:
    if found := _VERSION.search(message.text):
        notes.add("version", line_no, found[1], found[2].rstrip(".:-"))
    return found is not None


_Reader = Callable[[LineReader, Message, int, int], bool]


def _plain(read: Callable[[Message, int, Notes], bool]) -> _Reader:
    return lambda reader, message, line_no, _place: read(message, line_no, reader.notes)


# The first literal that a text holds decides who reads it; the frequent ones, which `info` has columns for, first.
_FREQUENT: tuple[tuple[str, _Reader], ...] = (
    (VIA, _plain(transports.read_link)),
    (collectives.WORD, _plain(collectives.read_line)),
    (tuning.CHOICE, _plain(tuning.read_choice)),
    (transports.CHANNEL, LineReader._ring),
    *((word, LineReader._graph) for word in graphs.WORDS),
    (devices.WORD, _plain(devices.read_devices)),
)
_FEW: tuple[tuple[str, _Reader], ...] = (
    ("COMPLETE", LineReader._init),
    ("Init START", LineReader._init),
    ("Init timings", _plain(init.read_timing)),
    (" coll channels, ", _plain(init.read_channels)),
    (" nRanks ", _plain(init.read_shape)),
    ("Using network ", _plain(init.read_network)),
    (SETTING, _plain(_setting)),
    ("CCL version", _plain(_version)),
)
_READERS = (*_FREQUENT, *_FEW)
FEW = tuple(literal for literal, _ in _FEW)
"""What tells the kinds of line that a process prints a few times only."""
