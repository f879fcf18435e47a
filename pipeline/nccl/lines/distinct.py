"""Repeated values as indices of the distinct ones, so that each is processed once."""

from __future__ import annotations

import numpy as np
import polars as pl


def coded(values: pl.Series) -> tuple[pl.Series, np.ndarray]:
    """The distinct values, in any order, and the index of each row's among them.

    >>> names, codes = coded(pl.Series(["b", "a", "b"]))
    >>> [names[code] for code in codes.tolist()]
    ['b', 'a', 'b']
    """
    distinct, codes = coded_rows(values.alias("value").to_frame())
    return distinct.to_series(), codes


def coded_rows(rows: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray]:
    """The distinct ones of `rows`, in any order, and the index of each row's among them."""
    groups = rows.with_row_index("__row").group_by(rows.columns).agg("__row")
    of_each = groups.drop_in_place("__row")  # by polars, because pyarrow's way to numpy imports pandas
    codes = np.empty(len(rows), dtype=np.int64)
    codes[of_each.explode().to_numpy()] = np.repeat(np.arange(len(groups)), of_each.list.len().to_numpy())
    return groups, codes
