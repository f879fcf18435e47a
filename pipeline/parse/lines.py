"""The front door of every log: bytes in, clean candidate lines out.

Encoding, NUL bytes, carriage returns, colours and launcher prefixes are dealt with here, once, so that a dialect sees
only the text its framework printed. Everything is a whole-column operation over the lines of many files at a time:
a sweep is thousands of small logs, and a call per file costs more than the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

LINES = pl.Schema({"source": pl.Int64, "line_no": pl.Int64, "text": pl.String, "rank": pl.Int64, "host": pl.String})

MAX_LINE_CHARS = 16_384
"""A longer line is cut before any pattern sees it: the longest real metric lines are below 2,000 characters."""

# CSI sequences (16 colours, 256 colours, 24 bit, clear screen), OSC titles, and lone two-byte escapes.
_ANSI = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"

# One launcher prefix. torchrun --tee prints [default3]: or [rank0]: (twice in error text), srun --label `16: `, mpirun
# `[1,14]<stderr>:`, pdsh `vm-07-14: `, the bigcode launcher `[ip-26-0-147-189:0]:`, nemo-run `task/0 `, and
# Primus `[20260511 02:59:23][rank-7/8][DEBUG] [---utils.py:425] : `.
_PREFIXES = (
    r"\[(?:default|rank)\d+\]:",
    r"\d{1,5}: ",
    r"\[\d+,\d+\]<std(?:out|err)>:",
    r"\[[A-Za-z][\w.-]*:\d+\]:",
    r"[A-Za-z][\w.]*(?:-[\w.]+)+: ",
    r"[\w-]+/\d+ ",
    r"\[\d{8} \d\d:\d\d:\d\d\]\[rank-\d+/\d+\]\[[A-Z]+ *\] *\[[^\]]*\] : ?",
)
_PREFIX = "^(?:" + "|".join(_PREFIXES) + ")+"
_PREFIX_RANK = r"\[rank(\d+)\]|\[rank-(\d+)/|\[\d+,(\d+)\]<|^(\d{1,5}): |\[default(\d+)\]"
_PREFIX_HOST = r"^\[([A-Za-z][\w.-]*):\d+\]:|^([A-Za-z][\w.]*(?:-[\w.]+)+): "


def split(source: int, data: bytes, first_line: int = 1) -> pl.DataFrame:
    """Lines of one block of one file, split at line feeds.

    Args:
        source: id of the file within the batch.
        data: whole lines; a last line without its line feed is a line too.
        first_line: line number of the block's first line.

    Returns:
        One row per line: `source`, `line_no`, `text` (undecodable bytes replaced, NULs removed, cut at
        MAX_LINE_CHARS). A carriage return before the line feed is dropped, others stay.
    """
    if not data:
        return pl.DataFrame(schema={"source": pl.Int64, "line_no": pl.Int64, "text": pl.String})
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if not data.endswith(b"\n"):
        data += b"\n"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data = data.decode("utf-8", errors="replace").encode("utf-8")
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    # Arrow offsets are begin-inclusive, end-exclusive: each line keeps its line feed, which is stripped below.
    offsets = np.concatenate(([0], ends + 1)).astype(np.int64)
    array = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    text = pl.Series("text", array)
    return pl.DataFrame({"text": text}).select(
        pl.lit(source, dtype=pl.Int64).alias("source"),
        (pl.int_range(pl.len(), dtype=pl.Int64) + first_line).alias("line_no"),
        pl.col("text"),
    )


def candidates(lines: pl.DataFrame, anchors: Sequence[str], *, edge: int = 20) -> pl.DataFrame:
    """Lines that hold one of the literals, cleaned, in order; plus the first and last `edge` lines of each file.

    The edges carry the timestamps from which a run's begin and end are read. Returns LINES columns and `is_edge`
    (true for lines kept only for their timestamps).
    """
    position = pl.col("line_no")
    kept = lines.with_columns(
        hit=pl.col("text").str.contains_any(list(anchors)),
        near=(position - position.min().over("source") < edge) | (position.max().over("source") - position < edge),
    ).filter(pl.col("hit") | pl.col("near"))
    return clean(kept.select("source", "line_no", "text", ~pl.col("hit").alias("is_edge")))


def clean(lines: pl.DataFrame) -> pl.DataFrame:
    """Strip line ends, colours and launcher prefixes; a line of carriage returns becomes one row per redraw."""
    text = pl.col("text").str.strip_chars_end("\r\n")
    rows = lines.with_columns(text=text)
    if rows.select(pl.col("text").str.contains("\r", literal=True).any()).item():
        rows = rows.with_columns(pl.col("text").str.split("\r")).explode("text")
    rows = rows.with_columns(pl.col("text").str.slice(0, MAX_LINE_CHARS))
    if rows.select(pl.col("text").str.contains("\x1b", literal=True).any()).item():
        rows = rows.with_columns(pl.col("text").str.replace_all(_ANSI, ""))
    prefix = pl.col("text").str.extract(f"({_PREFIX})")
    rank = pl.coalesce(*(prefix.str.extract(_PREFIX_RANK, group) for group in range(1, 6)))
    host = pl.coalesce(*(prefix.str.extract(_PREFIX_HOST, group) for group in range(1, 3)))
    return rows.with_columns(
        text=pl.col("text").str.slice(prefix.str.len_chars().fill_null(0)),
        rank=rank.cast(pl.Int64, strict=False),
        host=host,
        prefix=prefix,
    )


def blocks(chunks: Iterable[bytes], *, max_line_bytes: int = 16 << 20) -> Iterable[tuple[bytes, int, int]]:
    """Cut a stream of byte chunks into blocks of whole lines.

    Yields:
        (data, first line number, bytes of over-long line dropped before or within this block). A line longer than
        `max_line_bytes` is cut there and the rest of it skipped, so that memory stays bounded whatever the input.
    """
    carry = b""
    line = 1
    skipping = False
    dropped = 0
    for chunk in chunks:
        if skipping:
            end = chunk.find(b"\n")
            if end < 0:
                dropped += len(chunk)
                continue
            dropped += end
            chunk, skipping = chunk[end + 1 :], False
        data = carry + chunk
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) > max_line_bytes:
            dropped += len(data) - MAX_LINE_CHARS
            yield data[:MAX_LINE_CHARS] + b"\n", line, dropped
            line, carry, skipping, dropped = line + 1, b"", True, 0
            continue
        carry = data[cut:]
        if cut:
            yield data[:cut], line, dropped
            line, dropped = line + data.count(b"\n", 0, cut), 0
    if carry or dropped:
        yield carry, line, dropped
