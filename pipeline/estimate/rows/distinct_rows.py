"""Rows that ask the same of the estimator, each once.

A sweep repeats its layouts, and a store holds one model under many names. What a row asks follows from its columns; of
the model's name counts only what it says of the shape (`model_shape.meant_by`).
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.estimate.rows.model_shape import meant_by

_NAMED = ("model", "stated_params")


def distinct_rows(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """(rows of `read_rows` that ask something each, the place among them of what each of `rows` asks).

    The first of several names that mean the same stands for all of them.
    """
    named = _with_first_names(rows)
    distinct = named.unique(keep="first", maintain_order=True)
    if distinct.height == rows.height:
        return named, pl.Series("place", range(rows.height), dtype=pl.UInt32)
    places = named.join(
        distinct.with_row_index("place"), on=named.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return distinct, places["place"]


def _with_first_names(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with one name for all models of which a name and the parameters beside it say the same."""
    names = rows.select(_NAMED).unique(maintain_order=True)
    meant = [meant_by(model or "", stated) for model, stated in names.iter_rows()]
    one = names.with_columns(
        entry=pl.Series([entry["model"] if entry else None for entry, _ in meant], dtype=pl.String),
        family=pl.Series([family["pattern"] if family else None for _, family in meant], dtype=pl.String),
    ).with_columns(first=pl.col("model").drop_nulls().first().over("entry", "family", "stated_params"))
    renamed = rows.select(_NAMED).join(one, on=_NAMED, how="left", nulls_equal=True, maintain_order="left")
    return rows.with_columns(model=renamed["first"])
