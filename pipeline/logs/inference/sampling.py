"""Lines of a log that are looked at: from everywhere, and few of the redraws of a bar that say nothing else."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from sweepscope.pipeline.logs.synonyms import LOSS_VALUES

ENOUGH = 900
"""Lines with numbers that are looked at."""
_STRETCH = 20
_BAR = r"[0-9]{1,3}%\|[^|]*\| *[0-9.]+\w?/[0-9.]+\w? \[[^\]]*\]\s*$"
"""A bar with nothing but its count, as redrawn many times a second."""
_LEAST = 10

Row = tuple[int, str, int, int | None, datetime | None, str | None]
"""Number, text, block, rank and time of a line."""


def sampled(sample: pl.DataFrame) -> list[Row]:
    """Lines with numbers: those at the begin and the end, and stretches from between; each stretch is a block.

    Args:
        sample: `line_no`, `text`, `block`, `rank`, `ts` and `prefix` of lines, in order.
    """
    numbered = sample.select("line_no", "text", "block", "rank", "ts", "prefix").filter(
        pl.col("text").str.contains("[0-9]")
    )
    if numbered.height > ENOUGH:
        numbered = _without_redraws(numbered)
    if numbered.height <= ENOUGH:
        return numbered.rows()
    head, tail = ENOUGH // 3, ENOUGH // 6
    middle = numbered[head:-tail]
    count = ENOUGH // 2 // _STRETCH
    begins = (at * middle.height // count for at in range(count))
    stretches = [
        middle[begin : begin + _STRETCH].with_columns(block=pl.lit(-at - 1, numbered.schema["block"]))
        for at, begin in enumerate(begins)
    ]
    return pl.concat([numbered[:head], *stretches, numbered[-tail:]]).rows()


def _without_redraws(rows: pl.DataFrame) -> pl.DataFrame:
    """The lines without those of a bar between its first and its last, where others print the losses.

    They would be nearly all of the sample.
    """
    text, is_bar = pl.col("text"), pl.col("is_bar")
    marked = rows.with_columns(is_bar=text.str.contains(_BAR))
    losses = marked.filter(~is_bar)["text"].str.contains(LOSS_VALUES).sum()
    if losses < _LEAST:
        return rows
    is_between = (is_bar & is_bar.shift(1) & is_bar.shift(-1)).fill_null(value=False)
    return marked.filter(~is_between).drop("is_bar")
