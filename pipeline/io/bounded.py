"""Bytes of a file up to what may be read as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sweepscope.pipeline.errors import LimitError
from sweepscope.schemas import limits


def bounded(chunks: Iterable[bytes], most: int | None = None) -> Iterator[bytes]:
    """The chunks. Raises LimitError behind `most` bytes, which are limits.WHOLE_BYTES unless given."""
    most = limits.WHOLE_BYTES if most is None else most
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise LimitError(f"it is larger than {most / limits.MIB:,.4g} MiB, the limit for such a file. Split it.")
        yield chunk


def check_table(*, columns: int, rows: int, size: int) -> None:
    """Raise LimitError for a table that takes more memory than its text, of `size`, lets expect."""
    if columns > limits.TABLE_COLUMNS:
        raise LimitError(
            f"it has {columns:,} columns, over {limits.TABLE_COLUMNS:,}. Leave out those of single layers."
        )
    if columns * rows > limits.TABLE_CELLS_PER_BYTE * max(size, limits.MIB):
        raise LimitError(
            f"its {rows:,} rows lack most of the {columns:,} columns that the header names. Mend the table."
        )


def text_of(chunks: Iterable[bytes], most: int | None = None) -> str:
    """The chunks as one text, without a byte order mark; what is not UTF-8 is replaced. Raises as `bounded` does."""
    return b"".join(bounded(chunks, most)).decode("utf-8-sig", "replace")
