"""Source code in a log: some scripts print their own text first, so that a run can be told from what it ran."""

from __future__ import annotations

import polars as pl

_CODE = (
    r"^\s*(?:def \w+\(|class \w+|import \w|from \S+ import |return\b|elif .*:|else:|try:|except\b.*:|finally:|"
    r"(?:with|for|while|if) .+:\s*(?:#.*)?$|@\w+|assert |raise |self\.\w|print\(|\"\"\"|# |#include|"
    r"\w+(?:\.\w+)+\(.*\)$|\w+ = [\w.]+\()"
)
_WINDOW = 40
_SHARE = 0.25
"""Of the lines of a window, from which on it is code: of Python's, a third begin with a keyword."""
_LEAST = 40
"""Lines of code below which a log prints an excerpt only, as of a traceback."""


def without_source_code(sample: pl.DataFrame) -> pl.DataFrame:
    """The lines of a sample but for stretches of source code, each from its first to its last line that surely is code.

    Args:
        sample: `text` of cleaned lines, in order.
    """
    is_code = sample["text"].str.contains(_CODE)
    if is_code.sum() < _LEAST:
        return sample
    marked = sample.select(row=pl.int_range(pl.len()), is_code=is_code).with_columns(
        is_dense=pl.col("is_code").cast(pl.Float64).rolling_mean(_WINDOW, min_samples=1, center=True) >= _SHARE
    )
    marked = marked.with_columns(stretch=pl.col("is_dense").rle_id())
    of_code = marked.filter("is_dense", "is_code").group_by("stretch")
    stretches = of_code.agg(first=pl.col("row").min(), last=pl.col("row").max(), lines=pl.len())
    left_out = marked.join(stretches.filter(pl.col("lines") >= _LEAST), on="stretch")
    left_out = left_out.filter(pl.col("row").is_between("first", "last"))
    return sample.filter(~pl.int_range(pl.len()).is_in(left_out["row"].implode()))
