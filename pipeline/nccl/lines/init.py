"""Lines of communicator initialisation (src/init.cc): start, complete, destroy, abort, timings, channels, nodes.

Each pattern names the columns of its facts, in the syntax of both Python's `re`, for single lines, and polars, for
whole columns of them.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import PARTS, SCHEMAS, Notes
from sweepscope.pipeline.nccl.lines.distinct_lines import Lines
from sweepscope.pipeline.nccl.lines.messages import Message

_STATES = {
    "Init START": "started",
    "Init COMPLETE": "complete",
    "COMPLETE": "complete",
    "Destroy COMPLETE": "destroyed",
    "Abort COMPLETE": "aborted",
}
# 2.29+ begins START with [Rank R]; 2.21+ names the call; a split's START has no blank before the dash. Old versions
# lack commId (until 2.15), busId (2.4) and the devices and the word Init (2.3), and splits lack commId from 2.24 on.
# RCCL adds words behind commId.
_INIT = (
    r"^(?:\[Rank [0-9]+\] )?(?:(?P<api>nccl[A-Za-z0-9_]+) )?comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>[0-9]{1,9}) "
    r"nranks (?P<nranks>[0-9]{1,9})(?: cudaDev (?P<cuda_dev>-?[0-9]{1,9}))?(?: nvmlDev (?P<nvml_dev>-?[0-9]{1,9}))?"
    r"(?: busId (?P<bus_id>[0-9a-f]+))?(?P<more>.*?) ?- "
    r"(?P<state>Init START|(?:Init )?COMPLETE|Destroy COMPLETE|Abort COMPLETE)$"
)
_HASH = r" commId (0x[0-9a-f]+)"
# The count that tells splits of one parent apart got another name with 2.30.
_SPLIT = (
    r" parent (?P<parent>0x[0-9a-f]+)(?: (?:split|child)Count (?P<split_count>[0-9]{1,9}))? "
    r"color (?P<color>-?[0-9]{1,9})"
)
_TIMING = (
    r"^Init timings(?: - [A-Za-z0-9_]+)?: rank (?P<rank>[0-9]{1,9}) nranks (?P<nranks>[0-9]{1,9}) "
    r"total (?P<total>[0-9.]+) \((?P<parts>[^)]*)\)"
)
_PARTS = {name: rf"(?:^|, ){name} ([0-9.]+)(?:,|$)" for name in PARTS}
_SHAPE = (
    r"^comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>[0-9]{1,9}) nRanks (?P<nranks>[0-9]{1,9}) "
    r"nNodes (?P<nnodes>[0-9]{1,9}) "
)
_CHANNELS = (
    r"^(?P<coll>[0-9]{1,9}) coll channels, (?:(?P<collnet>[0-9]{1,9}) collnet channels, )?"
    r"(?:(?P<nvls>[0-9]{1,9}) nvls channels, )?(?P<p2p>[0-9]{1,9}) p2p channels"
    r"(?:, (?P<per_peer>[0-9]{1,9}) p2p channels per peer)?"
)
_NETWORK = r"^Using network (?P<network>.+)$"
_PATTERNS = {pattern: re.compile(pattern) for pattern in (_INIT, _HASH, _SPLIT, _TIMING, _SHAPE, _CHANNELS, _NETWORK)}
_Fields = dict[str, str | None]


def read_init(message: Message, line_no: int, notes: Notes) -> bool:
    """A line that a communicator or one of its ranks begins, is ready or has ended."""
    found = _fields(_INIT, message.text)
    if found is None:
        return False
    more = found["more"] or ""
    comm_hash = _PATTERNS[_HASH].search(more)
    split = _PATTERNS[_SPLIT].search(more)
    told = found | (split.groupdict() if split else {})
    _add(
        "init",
        told | {"state": _STATES[found["state"] or ""], "comm_hash": comm_hash and comm_hash[1]},
        message,
        line_no,
        notes,
    )
    return True


def read_timing(message: Message, line_no: int, notes: Notes) -> bool:
    """`Init timings`, which follows a COMPLETE line of the same thread; seconds, two decimals."""
    found = _fields(_TIMING, message.text)
    if found is None:
        return False
    told = {name: re.search(pattern, found["parts"] or "") for name, pattern in _PARTS.items()}
    parts = {name: part and part[1] for name, part in told.items()}
    _add("timing", found | parts, message, line_no, notes)
    return True


def read_shape(message: Message, line_no: int, notes: Notes) -> bool:
    """`comm .. rank .. nRanks .. nNodes ..`: how many hosts a communicator spans."""
    return _read("shape", _SHAPE, message, line_no, notes)


def read_channels(message: Message, line_no: int, notes: Notes) -> bool:
    """`16 coll channels, 16 collnet channels, 0 nvls channels, ...`; what a version does not print is NULL."""
    return _read("channels", _CHANNELS, message, line_no, notes)


def read_network(message: Message, line_no: int, notes: Notes) -> bool:
    """`Using network IB`: what a communicator may use between hosts."""
    return _read("network", _NETWORK, message, line_no, notes)


def _read(kind: str, pattern: str, message: Message, line_no: int, notes: Notes) -> bool:
    found = _fields(pattern, message.text)
    if found is not None:
        _add(kind, found, message, line_no, notes)
    return found is not None


def _fields(pattern: str, text: str) -> _Fields | None:
    found = _PATTERNS[pattern].match(text)
    return found and found.groupdict()


def _add(kind: str, fields: _Fields, message: Message, line_no: int, notes: Notes) -> None:
    """One row of facts; the columns behind those of the thread are the fields."""
    columns = list(SCHEMAS[kind].items())[5:]
    notes.add(
        kind, line_no, message.host, message.pid, message.tid, *(_typed(fields.get(name), of) for name, of in columns)
    )


def _typed(text: str | None, of: pl.DataType) -> str | int | float | None:
    if text is None or of == pl.String:
        return text
    try:
        return int(text) if of == pl.Int64 else float(text)
    except ValueError:
        return None


def read_columns(kind: str, lines: Lines, notes: Notes) -> tuple[pl.DataFrame, np.ndarray]:
    """Whole columns of lines of one kind of `KINDS`: those that tell something, as facts; and which texts do."""
    texts = pl.LazyFrame({"text": lines.texts}).with_row_index("told")
    found = texts.with_columns(pl.col("text").str.extract_groups(KINDS[kind]).alias("fields")).unnest("fields")
    found = found.filter(pl.col("rank" if "rank" in SCHEMAS[kind] else SCHEMAS[kind].names()[5]).is_not_null())
    if kind == "init":
        found = found.with_columns(
            pl.col("more").str.extract_groups(_SPLIT).alias("split"),
            pl.col("more").str.extract(_HASH).alias("comm_hash"),
            pl.col("state").replace_strict(_STATES, return_dtype=pl.String),
        ).unnest("split")
    if kind == "timing":
        found = found.with_columns(**{name: pl.col("parts").str.extract(part) for name, part in _PARTS.items()})
    fields = found.collect()
    is_told = np.zeros(len(lines.texts), dtype=bool)
    is_told[fields["told"].to_numpy()] = True
    fields = fields.drop("text").cast(
        {name: of for name, of in SCHEMAS[kind].items() if name in fields.columns}, strict=False
    )
    place = np.cumsum(is_told) - 1
    rows = lines.rows.filter(is_told[lines.rows["told"].to_numpy()])
    threads = lines.threads[rows["who"]].select("source", "host", "pid", "tid")
    told = pl.concat([rows.drop("told"), threads, fields[place[rows["told"].to_numpy()]]], how="horizontal")
    notes.add_frame(kind, told)
    return told, is_told


KINDS = {"init": _INIT, "timing": _TIMING, "shape": _SHAPE, "channels": _CHANNELS, "network": _NETWORK}
