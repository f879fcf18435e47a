"""The map: one block of whole lines to facts. Knows which module reads which line, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipeline.nccl import bench, collectives, devices, graphs, init, transports, warnings, watchdog
from pipeline.nccl.facts import Facts, Notes
from pipeline.nccl.messages import Message, messages

MAX_LINE_BYTES = 16_384
"""NCCL cuts its messages at 1,024 bytes; glued lines are longer. What stands behind is not looked at."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# 2.20.5+cuda12.4, 2.12.6azure3+cuda11.4, RCCL's 2.22.3-HEAD:271856d; ranks glue their banners to one another.
_VERSION = re.compile(r"([NR]CCL) version ?:? ?(\d+\.\d+(?:\.\d+)?(?:(?![NR]CCL )[\w.+:-])*)")
_TUNING = re.compile(
    r"(?:(?P<op>[A-Z]\w+): )?(?P<size>\d{1,18}) Bytes -> Algo (?P<algo>\w+) proto (?P<proto>\w+)"
    r"(?: (?:time (?P<time>[\d.]+)|channel\{Lo\.\.Hi\}=\{(?P<channels>\d+\.\.\d+)\}))?"
)
# Numbers until 2.23 (src/include/nccl_tuner.h); CollNet was one algorithm, number 2, until 2.13, which printed none.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_NETWORK = re.compile(r"Using network (.+)")
_ENV = re.compile(r"([NR]CCL_\w+) set by environment to (.*?)\.?\Z")


def scan(data: bytes, first_line: int) -> Facts:
    """Facts of a block of whole lines, of which the first has the given number."""
    notes = Notes()
    if b"NCCL" not in data and not bench.may_hold_rows(data):
        return notes.facts()
    if collectives.is_worth_it(data):
        numbered = collectives.add_up(data, first_line, notes)
        rest = b"\n".join(line for _, line in numbered)
    else:
        numbered, rest = list(enumerate(data.split(b"\n"), first_line)), data
    has_hangs = any(literal.encode() in rest for literal in watchdog.LITERALS)
    watchdog.read_context(rest, [number for number, _ in numbered], notes)
    scanner = _Scanner(notes, has_tables=bench.may_hold_rows(rest), has_hangs=has_hangs)
    for line_no, line in numbered:
        scanner.line(line, line_no)
    scanner.finish()
    return notes.facts()


class _Scanner:
    """Reads lines one by one."""

    def __init__(self, notes: Notes, *, has_tables: bool, has_hangs: bool) -> None:
        self.notes, self.has_tables, self.has_hangs = notes, has_tables, has_hangs
        self.epochs: dict[tuple[str, int, int], int] = {}
        self.tally = {"lines": 0, "other": 0, "damaged": 0}
        self.processes: dict[tuple[str, int], list[int]] = {}

    def line(self, data: bytes, line_no: int) -> None:
        """One physical line."""
        if b"NCCL" in data:
            self._nccl_line(_decoded(data), line_no)
        elif self.has_tables and (b"#" in data or b"_perf" in data or bench.looks_like_row(data)):
            self._bench_line(_decoded(data), line_no)

    def finish(self) -> None:
        """Hand over what was counted."""
        for name, lines in self.tally.items():
            if lines:
                self.notes.add("tally", name, lines)
        for (host, pid), (lines, clean) in self.processes.items():
            self.notes.add("process", host, pid, lines, clean)

    def _bench_line(self, text: str, line_no: int) -> None:
        if "#" in text and bench.read_mark(text, line_no, self.notes):
            return
        if not bench.read_row(text, line_no, self.notes, is_torn=False):
            bench.read_rest(text, line_no, self.notes, is_torn=False)

    def _nccl_line(self, text: str, line_no: int) -> None:
        found = list(messages(text))
        if not found:
            self._plain_line(text, line_no)
            return
        first = found[0]
        begin = text.find(f"{first.host}:{first.pid}:")
        if begin > 20 and not bench.read_row(text[:begin], line_no, self.notes, is_torn=True):
            bench.read_rest(text[:begin], line_no, self.notes, is_torn=True)
        for message in found:
            self._message(message, line_no)
        if self.has_hangs and any(literal in text for literal in watchdog.LITERALS):
            watchdog.read_watchdog(text, line_no, self.notes)

    def _plain_line(self, text: str, line_no: int) -> None:
        """A line with NCCL in it and no prefix: banners, PyTorch, nccl-tests."""
        for version in _VERSION.finditer(text):
            self.notes.add("version", line_no, version[1], version[2].rstrip(".:-"))
        if any(literal in text for literal in watchdog.LITERALS):
            watchdog.read_watchdog(text, line_no, self.notes)
        if "nccl" in text or "_perf" in text or "#" in text:
            bench.read_mark(text, line_no, self.notes)
        if " NCCL INFO " in text or " NCCL WARN " in text:
            self.tally["damaged"] += 1  # its prefix is missing or garbled

    def _message(self, message: Message, line_no: int) -> None:
        self.tally["lines"] += 1
        seen = self.processes.setdefault((message.host, message.pid), [0, 0])
        seen[0] += 1
        seen[1] += message.is_first
        if message.level == "WARN":
            warnings.read_warning(message, line_no, self.notes)
        elif message.level == "INFO" and not self._info(message, line_no):
            self.tally["other"] += 1
        self.tally["damaged"] += message.is_cut

    def _info(self, message: Message, line_no: int) -> bool:
        """Whether the text told something."""
        for literal, read in _READERS:
            if literal in message.text:
                return read(self, message, line_no)
        return False

    def connection(self, message: Message, line_no: int) -> bool:
        """A `via` line."""
        epoch = self.epochs.get((message.host, message.pid, message.tid), 0)
        return transports.read_link(message, line_no, epoch, self.notes)

    def ring(self, message: Message, line_no: int) -> bool:
        """The whole ring of a channel: kept as it stands; the first channel's tells the number of channels, too."""
        is_kept = graphs.read_graph(message, line_no, self.notes)
        return transports.read_ring(message, line_no, self.notes) or is_kept

    def init(self, message: Message, line_no: int) -> bool:
        """A line of a communicator's life; the thread's links behind it are of the next one."""
        if not init.read_init(message, line_no, self.notes):
            return False
        thread = (message.host, message.pid, message.tid)
        self.epochs[thread] = self.epochs.get(thread, 0) + 1
        return True


def _tuning(message: Message, line_no: int, notes: Notes) -> bool:
    found = None if message.is_cut else _TUNING.match(message.text)
    if found is None:
        return False
    algorithm, protocol = _word(found["algo"], _ALGORITHMS), _word(found["proto"], _PROTOCOLS)
    notes.count("tuning", line_no, found["op"], int(found["size"]), algorithm, protocol, found["channels"])
    return True


def _network(message: Message, line_no: int, notes: Notes) -> bool:
    if found := _NETWORK.match(message.text):
        notes.add("network", line_no, message.host, message.pid, message.tid, found[1])
    return found is not None


def _setting(message: Message, line_no: int, notes: Notes) -> bool:
    if found := _ENV.match(message.text):
        notes.count("env", line_no, found[1], found[2][:200])
    return found is not None


def _version(message: Message, line_no: int, notes: Notes) -> bool:
    if found := _VERSION.search(message.text):
        notes.add("version", line_no, found[1], found[2].rstrip(".:-"))
    return found is not None


_Reader = Callable[[_Scanner, Message, int], bool]


def _plain(read: Callable[[Message, int, Notes], bool]) -> _Reader:
    return lambda scanner, message, line_no: read(message, line_no, scanner.notes)


# The first literal that a text holds decides who reads it; the frequent ones first.
_READERS: tuple[tuple[str, _Reader], ...] = (
    (" via ", _Scanner.connection),
    (" opCount ", _plain(collectives.read_line)),
    (" Bytes -> Algo ", _plain(_tuning)),
    ("Channel ", _Scanner.ring),
    ("Trees [", _plain(graphs.read_graph)),
    ("Ring ", _plain(graphs.read_graph)),
    ("NET/", _plain(devices.read_devices)),
    ("COMPLETE", _Scanner.init),
    ("Init START", _Scanner.init),
    ("Init timings", _plain(init.read_timing)),
    (" coll channels, ", _plain(init.read_channels)),
    (" nRanks ", _plain(init.read_shape)),
    ("Using network ", _plain(_network)),
    (" set by environment to ", _plain(_setting)),
    ("CCL version", _plain(_version)),
)


def _word(text: str, names: tuple[str, ...]) -> str:
    """A choice that old versions print as a number."""
    return names[int(text)] if text.isdecimal() and int(text) < len(names) else text


def _decoded(data: bytes) -> str:
    text = data[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip("\r\n")
    return _ESCAPES.sub("", text) if "\x1b" in text else text
