"""COLL lines counted by two substrings, found at fixed word positions: the caller with its operation, and the call's
size, type and communicator. Patterns run over the distinct ones only. Why this is fast: docs/performance.md,
"NCCL lines".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa

from sweepscope.pipeline.nccl.lines.block import parts_as_texts
from sweepscope.pipeline.text.arrow_buffers import column_of

_OP = r"(?P<op>[A-Z][A-Za-z0-9_]{2,30})"
# In the syntax of both Python's `re` and polars.
TAIL = (
    r"(?P<count>[0-9]{1,18}) datatype (?P<datatype>[0-9]{1,3}) op (?P<redop>[0-9]{1,6}) root (?P<root>-?[0-9]{1,9}) "
    r"comm (?P<comm>0x[0-9a-f]{1,16})(?: \[nranks=(?P<nranks>[0-9]{1,9})\])?"
)
# RCCL has `acc`, and more words after the stream.
CALL = (
    rf"{_OP}: opCount (?P<opcount>[0-9a-f]{{1,15}}) sendbuff (?P<sendbuff>[!-~]+) recvbuff (?P<recvbuff>[!-~]+) "
    rf"(?:acc [!-~]+ )?count {TAIL}"
)
_CALLER = (
    rf"(?P<host>[A-Za-z0-9_.-]+):(?P<pid>[0-9]{{1,10}}):[0-9]{{1,10}} \[-?[0-9]{{1,4}}\] NCCL INFO {_OP}: opCount$"
)
_LINE = re.compile(rf"{CALL}(?: |\Z)")
_BETWEEN = re.compile(rb"[\x00- ]")
_BLANK, _END = ord(" "), ord("\n")
_WINDOW_BYTES = 2 << 20
"""Cut at once: what is made of it stays in the processor's cache."""
_STRETCHES = 4


@dataclass(frozen=True)
class Layout:
    """Positions (from 0) in a line of the words of its process, `opCount`, `count` and the last of its communicator."""

    num_words: int
    process: int
    mark: int
    count: int
    comm: int

    @classmethod
    def of(cls, line: bytes) -> Layout:
        """The layout of one intact COLL line without its line feed. Raises ValueError for any other line."""
        words = _BETWEEN.split(line)
        # A cut call glued before a whole one would mix the words of both, out of order.
        if words.count(b"opCount") != 1 or not _LINE.search(line.decode("ascii", "replace")):
            raise ValueError("not an intact COLL line")
        mark = words.index(b"opCount")
        # A launcher may print words before the process; [dev] NCCL INFO follows it.
        process = next((at for at in range(mark - 1, -1, -1) if words[at].count(b":") >= 2), None)
        if process is None:
            raise ValueError("no process precedes the call")
        count = words.index(b"count", mark)
        comm = words.index(b"comm", count) + 1
        comm += words[comm + 1 : comm + 2] != [] and words[comm + 1].startswith(b"[nranks=")
        return cls(len(words), process, mark, count, comm)


def counted(layout: Layout, data: bytes) -> tuple[pl.DataFrame, np.ndarray]:
    """Counts of calls of one layout; calls that differ in addresses only are one row.

    Args:
        data: whole lines. The last one needs no line feed.

    Returns:
        `host`, `pid`, `op` and the groups of TAIL as text, the number of `lines`, the indices of the `first` and `last`
        of them, and `last_op`, the opCount of the last; and the indices of all lines that are no such calls.
    """
    data = data if data.endswith(b"\n") else data + b"\n"
    rows, offsets, num_lines = _cut(layout, data)
    (caller, call), key, at = _stretches(data, offsets), ["caller", "call"], pl.col("index")
    calls = pl.LazyFrame({"caller": caller, "call": call}).with_row_index()
    groups = calls.group_by(key).agg(lines=pl.len(), first=at.first(), last=at.last()).collect()
    named = groups.with_columns(
        parts_as_texts(groups["caller"].to_list()).str.extract_groups(_CALLER).alias("who"),
        parts_as_texts(groups["call"].to_list()).str.extract_groups(f"^count {TAIL}$").alias("what"),
    ).unnest("who", "what")
    is_left = np.ones(num_lines, dtype=bool)
    is_left[rows] = False
    if named["host"].has_nulls() or named["comm"].has_nulls():
        is_odd = pl.col("host").is_null() | pl.col("comm").is_null()
        odd = calls.join(named.lazy().filter(is_odd), on=key, how="semi").select(at).collect()["index"]
        is_left[rows[odd.to_numpy()]] = True
        named = named.filter(~is_odd)
    first, last = named["first"].to_numpy(), named["last"].to_numpy()
    buffers = parts_as_texts([data[begin:end] for begin, end in offsets[last, 1:3].tolist()])
    found = named.drop(key).with_columns(
        buffers.str.extract("^ ([0-9a-f]{1,15}) ").alias("last_op"),
        pl.Series("first", rows[first]),
        pl.Series("last", rows[last]),
    )
    return found, np.flatnonzero(is_left)


def _cut(layout: Layout, data: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    """The indices of the lines with as many words as the layout has, the offsets of each, and the number of all lines.

    Offsets are a row per line: where caller, buffers, call and the remaining words begin.
    """
    byte = pl.Series(np.frombuffer(data, dtype=np.uint8))
    indices = _indices(_WINDOW_BYTES)
    all_rows, all_offsets, num_lines = [np.empty(0, dtype=np.int64)], [np.empty((0, _STRETCHES), dtype=np.int64)], 0
    for begin, size in _windows(data):
        if size > _WINDOW_BYTES:  # one line, too long for a call
            num_lines += 1
            continue
        window = byte.slice(begin, size)
        is_mark = window <= _BLANK
        mark = indices.head(size).filter(is_mark).to_numpy()
        ends = np.flatnonzero(window.filter(is_mark).to_numpy() == _END)
        rows = np.flatnonzero(np.diff(ends, prepend=-1) == layout.num_words)
        first = ends[rows] - layout.num_words + 1  # the blank after the first word of the line
        offsets = np.empty((len(rows), _STRETCHES), dtype=np.int64)
        line_begin = np.concatenate(([0], mark[ends[:-1]] + 1))[rows]
        offsets[:, 0] = mark[first + layout.process - 1] + 1 if layout.process else line_begin
        offsets[:, 1] = mark[first + layout.mark]
        offsets[:, 2] = mark[first + layout.count - 1] + 1
        offsets[:, 3] = mark[first + layout.comm]
        all_rows.append(rows + num_lines)
        offsets += begin
        all_offsets.append(offsets)
        num_lines += len(ends)
    return np.concatenate(all_rows), np.concatenate(all_offsets), num_lines


@cache
def _indices(size: int) -> pl.Series:
    return pl.Series(np.arange(size, dtype=np.uint32))


def _windows(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and size of pieces of whole lines, no larger than _WINDOW_BYTES unless a line is."""
    begin = 0
    while begin < len(data):
        end = data.rfind(b"\n", begin, begin + _WINDOW_BYTES) + 1 or data.find(b"\n", begin) + 1
        yield begin, end - begin
        begin = end


def _stretches(data: bytes, offsets: np.ndarray) -> tuple[pl.Series, pl.Series]:
    """Caller and call of each line, as views of `data`."""
    bounds = np.append(offsets.ravel(), len(data))
    raw = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    pieces = column_of(raw)
    return pieces.gather_every(_STRETCHES), pieces.gather_every(_STRETCHES, 2)
