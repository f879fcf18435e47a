"""Numbers of nccl.h that logs print for data types and reductions; RCCL has the same."""

from __future__ import annotations

import polars as pl

DATATYPES: tuple[tuple[str, int], ...] = (
    *(("int8", 1), ("uint8", 1), ("int32", 4), ("uint32", 4), ("int64", 8), ("uint64", 8)),
    *(("float16", 2), ("float32", 4), ("float64", 8), ("bfloat16", 2), ("float8e4m3", 1), ("float8e5m2", 1)),
)
"""Name and bytes of each type, in the order of their numbers."""
REDUCTIONS = ("sum", "prod", "max", "min", "avg")
"""In the order of their numbers (avg: 2.10+); larger numbers are reductions that the program has made."""

IS_P2P = pl.col("op").is_in(["Send", "Recv"])
IS_ROOTED = IS_P2P | pl.col("op").is_in(["Broadcast", "Reduce", "Gather", "Scatter"])
HAS_REDUCTION = pl.col("op").is_in(["AllReduce", "ReduceScatter", "Reduce"])


def with_names(calls: pl.DataFrame) -> pl.DataFrame:
    """`calls` with `datatype` and `reduction` as names; `root`, `redop` NULL where the operation has none.

    Args:
        calls: `op`, and `datatype`, `redop`, `root` as numbers.
    """
    return calls.with_columns(
        root=pl.when(IS_ROOTED).then("root"), redop=pl.when(HAS_REDUCTION).then("redop")
    ).with_columns(**names())


def names() -> dict[str, pl.Expr]:
    """`datatype` and `reduction` as names, from `datatype` and `redop` as numbers."""
    types = {code: name for code, (name, _) in enumerate(DATATYPES)}
    is_made = pl.col("redop").is_not_null()
    return {
        "datatype": pl.col("datatype").replace_strict(types, default=None, return_dtype=pl.String),
        "reduction": pl.col("redop").replace_strict(
            dict(enumerate(REDUCTIONS)), default=pl.when(is_made).then(pl.lit("user")), return_dtype=pl.String
        ),
    }
