"""COLL lines (src/enqueue.cc): one per API call and rank, gigabytes of them in a run with NCCL_DEBUG_SUBSYS=COLL.

    AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 1 datatype 7 op 0 root 0 comm 0x.. [nranks=16] stream 0x..

Blocks that are full of them are counted by `call_tokens` per process, communicator, operation, type, count and root;
lines of another layout (glued, damaged) are read as other INFO messages are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.call_tokens import CALL, TAIL, Layout, counted
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

MARK = b": opCount "
WORD = " opCount "
_MIN_LINES = 200
"""Fewer COLL lines of one layout are not worth a pass of `call_tokens`."""


def read_calls(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`coll` facts of COLL lines with their `span`; returns a mask of the texts that were understood."""
    is_call: np.ndarray = lines.texts.str.contains(rf"^{CALL}(?: |$)").to_numpy()
    calls = lines.of_texts(is_call)
    pieces = calls.texts.str.splitn(" count ", 2).struct
    # What differs from call to call (addresses, streams, RCCL's task) is no part of the key.
    tail, head = pieces["field_1"].str.splitn(" stream ", 2).struct["field_0"], pieces["field_0"]
    texts = pl.DataFrame({"tail": tail, "head": head, "op": head.str.splitn(":", 2).struct["field_0"]})
    found = (
        pl.concat([calls.rows, texts[calls.rows["text_id"]]], how="horizontal")
        .group_by("span", "op", "tail", maintain_order=True)
        .agg(
            pl.col("line_no", "prefix_id").first(),
            pl.col("head").last(),
            last_line=pl.col("line_no").last(),
            lines=pl.len(),
        )
        .with_columns(pl.col("tail").str.extract_groups(f"^{TAIL}(?: |$)").alias("found"))
        .unnest("found")
        .with_columns(
            pl.col("count", "datatype", "redop", "root", "nranks").cast(pl.Int64),
            last_op=pl.col("head").str.extract(": opCount ([0-9a-f]{1,15}) ").str.to_integer(base=16),
        )
    )
    notes.add_frame("coll", lines.with_prefix(found, "source", "host", "pid"))
    return is_call


def is_worth_it(data: bytes) -> bool:
    """Whether a sample of the block consists of COLL lines for a quarter or more."""
    sample = data[: 1 << 18]
    return sample.count(MARK) >= _MIN_LINES and sample.count(MARK) * 4 > sample.count(b"\n")


def add_up(data: bytes, first_line: int, notes: Notes, numbers: np.ndarray | None = None) -> list[tuple[int, bytes]]:
    """The lines of a block that are no COLL lines of a common layout, with their numbers; the others are counted.

    Args:
        data: whole lines, numbered from `first_line` on or by `numbers`.
    """
    return _add_up(data, np.empty(0, dtype=np.int64) if numbers is None else numbers, notes, first_line, tries=4)


def _add_up(data: bytes, numbers: np.ndarray, notes: Notes, first_line: int, *, tries: int) -> list[tuple[int, bytes]]:
    """`numbers` are the line numbers of `data`; none at all: they count up from `first_line`."""
    layout = _layout(data)
    if layout is None:
        return _numbered(data, numbers, first_line, None)
    summed, indices = counted(layout, data)
    left = _numbered(data, numbers, first_line, indices) if len(indices) else []
    cuts = _reused(summed, left, numbers, first_line)
    if cuts:
        left = []
        ends = _offsets(data)
        for begin, end in zip([0, *cuts], [*cuts, len(ends) - 1], strict=True):
            part = data[ends[begin] : ends[end]]
            left += _add_up(part, numbers[begin:end], notes, first_line + begin, tries=tries)
        return left
    notes.add_frame("coll", _facts(summed, numbers, first_line, notes.source))
    notes.add("tally", "summed", int(summed["lines"].sum()))
    again = [pair for pair in left if MARK in pair[1]] if tries else []
    if len(again) < _MIN_LINES:
        return left
    others = [pair for pair in left if MARK not in pair[1]]
    lines = b"".join(line + b"\n" for _, line in again)
    again_numbers = np.array([number for number, _ in again], dtype=np.int64)
    return sorted(others + _add_up(lines, again_numbers, notes, 0, tries=tries - 1))


def _layout(data: bytes) -> Layout | None:
    """The layout of the first intact COLL line among the first few."""
    at = 0
    for _ in range(20):
        at = data.find(MARK, at)
        if at < 0:
            return None
        begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        try:
            return Layout.of(data[begin:end])
        except ValueError:
            at = end
    return None


def _facts(summed: pl.DataFrame, numbers: np.ndarray, first_line: int, source: int) -> pl.DataFrame:
    def number(name: str) -> pl.Series:
        at = summed[name].to_numpy()
        return pl.Series(name, numbers[at] if len(numbers) else at + first_line, dtype=pl.Int64)

    return summed.with_columns(
        pl.col("last_op").str.to_integer(base=16, strict=False),
        source=pl.lit(source, pl.Int64),
        line_no=number("first"),
        last_line=number("last"),
    )


_ENDS = re.compile(rb"comm (0x[0-9a-f]+) rank .*(?:Init COMPLETE|Destroy COMPLETE|Abort COMPLETE)")


def _reused(summed: pl.DataFrame, left: Sequence[tuple[int, bytes]], numbers: np.ndarray, first_line: int) -> list[int]:
    """Indices of lines at which a communicator begins or ends, if calls of its address precede and follow the line."""
    found = {}
    for number, line in left:
        if match := _ENDS.search(line):
            index = int(np.searchsorted(numbers, number)) if len(numbers) else number - first_line
            found[index] = match[1].decode()
    if not found:
        return []
    marks = pl.DataFrame({"at": list(found), "comm": list(found.values())}, schema={"at": pl.Int64, "comm": pl.String})
    both = summed.select("comm", pl.col("first", "last").cast(pl.Int64)).join(marks, on="comm")
    cuts = both.filter((pl.col("first") < pl.col("at")) & (pl.col("at") < pl.col("last")))["at"].unique().sort()
    return [int(at) for at in cuts.gather_every(max(1, len(cuts) // 64))]


def _offsets(data: bytes) -> np.ndarray:
    """The offset of each line, and the end of the last."""
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")) + 1
    tail = [] if data.endswith(b"\n") else [len(data)]
    return np.concatenate(([0], ends, tail)).astype(np.int64)


def _numbered(data: bytes, numbers: np.ndarray, first_line: int, chosen: np.ndarray | None) -> list[tuple[int, bytes]]:
    """Lines with their numbers: the chosen indices, or all."""
    if chosen is None:
        lines = data.split(b"\n")
        lines = lines[:-1] if lines and not lines[-1] else lines
        line_numbers = numbers.tolist() if len(numbers) else range(first_line, first_line + len(lines))
        return list(zip(line_numbers, lines, strict=True))
    offsets = _offsets(data)
    found = []
    for at in chosen.tolist():
        number = int(numbers[at]) if len(numbers) else at + first_line
        found.append((number, data[offsets[at] : offsets[at + 1]].rstrip(b"\n")))
    return found
