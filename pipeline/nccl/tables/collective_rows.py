"""The fold for COLL lines: calls by communicator, and the bytes that each operation moved."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.nccl.codes import DATATYPES, HAS_REDUCTION, IS_P2P, IS_ROOTED, names
from sweepscope.pipeline.nccl.tables.communicators import Communicators

_WHOLE_BUFFER_FACTOR = {"AllGather", "ReduceScatter", "AlltoAll", "AllToAll", "Gather", "Scatter"}
"""Operations whose count is a share: the whole buffer is count * nranks."""


_MOST_BYTES = 1 << 50


def with_ranks(calls: pl.DataFrame, comms: Communicators) -> pl.DataFrame:
    """`coll` facts with `comm_index` and `rank` of the communicator that had that address then;
    NULL where its initialisation is not in the file."""
    timeline = comms.incarnations().rename({"nranks": "size"})
    named = calls.sort("line_no").join_asof(
        timeline, on="line_no", by=["source", "host", "pid", "comm"], strategy="backward", check_sortedness=False
    )
    is_over = pl.col("ended_at") < pl.col("line_no")
    return named.with_columns(
        pl.when(~is_over.fill_null(value=False)).then(pl.col("comm_index", "rank")),
        nranks=pl.coalesce("nranks", "size"),
    ).with_columns(nranks=pl.col("nranks").max().over("source", "host", "pid", "comm", "comm_index"))


def by_rank(calls: pl.DataFrame) -> pl.DataFrame:
    """`source`, `comm_index`, `rank`, `coll_calls`, `last_op_count` of each rank of each communicator."""
    return (
        calls.sort("last_line")
        .group_by("source", "comm_index", "rank")
        .agg(coll_calls=pl.col("lines").sum(), last_op_count=pl.col("last_op").drop_nulls().last())
    )


def collective_rows(calls: pl.DataFrame) -> pl.DataFrame:
    """Rows of `nccl_collectives`.

    The size of one operation follows NCCL's API: AllGather, ReduceScatter and AlltoAll count a share, the others the
    whole buffer (FORMATS: src/enqueue.cc, src/collectives.cc).
    """
    process = pl.concat_str("host", "pid", "comm", separator=":")
    typed = calls.with_columns(
        rank=pl.when(IS_P2P).then("rank"),
        root=pl.when(IS_ROOTED).then("root"),
        redop=pl.when(HAS_REDUCTION).then("redop"),
        caller=pl.when(pl.col("rank").is_not_null()).then(pl.col("rank").cast(pl.String)).otherwise(process),
        # Without an initialisation line the communicators of a process differ by address only.
        unknown=pl.when(pl.col("comm_index").is_null()).then("comm"),
    )
    key = ["source", "comm_index", "unknown", "nranks", "op", "datatype", "count", "redop", "root", "rank"]
    per_caller = typed.group_by(*key, "caller").agg(pl.col("lines").sum(), pl.col("line_no").min())
    rows = per_caller.group_by(key).agg(
        calls=pl.col("lines").sum(),
        collectives=pl.col("lines").max(),
        ranks_calling=pl.len().cast(pl.Int64),
        line_no=pl.col("line_no").min(),
    )
    sizes = {code: size for code, (_, size) in enumerate(DATATYPES)}
    buffer = pl.col("element_count").cast(pl.Float64) * pl.col("datatype").replace_strict(
        sizes, default=None, return_dtype=pl.Float64
    )
    shares = pl.when(pl.col("op").is_in(list(_WHOLE_BUFFER_FACTOR))).then("nranks").otherwise(1)
    # Glued lines share their number.
    rows = (
        rows.sort("source", "line_no", *key[1:]).rename({"count": "element_count"}).with_columns(size=buffer * shares)
    )
    # In floats, since a damaged count may be of any size; what a file can hold is far below.
    sane = pl.when(pl.col("size") < _MOST_BYTES)
    return (
        rows.with_columns(
            message_bytes=sane.then("size").cast(pl.Int64),
            total_bytes=sane.then(pl.col("size") * pl.col("collectives")).cast(pl.Int64, strict=False),
            **names(),
        )
        .rename({"unknown": "comm_pointer"})
        .drop("redop", "size")
    )
