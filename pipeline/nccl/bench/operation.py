"""Which operation a table of nccl-tests measured, where its program's name is not in the log.

The columns show it for most tables (nccl-tests, src/*.cu and doc/PERFORMANCE.md): a reduction is named or `none`, a
root is -1 or a rank, `count` is a share of `size` for operations that give each rank a part, and only AllReduce has a
bus bandwidth above its algorithm bandwidth. Otherwise a file's name may have it.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sweepscope.pipeline.nccl.names import operation_named_in

PRINTED, COLUMNS, FILE_NAME, OPTION = "printed", "columns", "file_name", "option"

_TYPE_BYTES = (
    {"int8": 1, "uint8": 1, "char": 1, "int32": 4, "uint32": 4, "int": 4, "int64": 8}
    | {"uint64": 8, "half": 2, "float16": 2, "bfloat16": 2, "float": 4, "float32": 4}
    | {"double": 8, "float64": 8, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
)


def with_inferred_operation(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` of `nccl_bench` with `op` and `op_source`; a table without the program's name is judged by its columns.

    The largest size of each table decides, since small ones are rounded. Without a list of devices, `nranks`
    follows from the share that `count` is of `size`.
    """
    width = pl.col("datatype").replace_strict(_TYPE_BYTES, default=None, return_dtype=pl.Int64)
    whole = pl.col("element_count") * width
    judged = (
        rows.filter((whole > 0) & (pl.col("message_bytes") >= whole))
        .with_columns(
            share=(pl.col("message_bytes") / whole), factor=pl.col("busbw_bytes_per_s") / pl.col("algbw_bytes_per_s")
        )
        .sort("message_bytes", "line_no")
        .group_by("source", "table_no")
        .agg(
            pl.col("share", "nranks", "reduction", "root", "factor", "busbw_bytes_per_s").last(),
            is_checked=pl.col("wrong_elements").is_not_null().any(),
            is_checked_in_place=pl.col("in_place_wrong_elements").is_not_null().any(),
            has_root=pl.col("root").is_not_null().any(),
        )
    )
    ranks = pl.col("share").round().cast(pl.Int64)
    # Rounded to whole vectors of 16 bytes per rank, so a little off at most.
    is_part = (pl.col("share") > 1.5) & ((pl.col("share") - ranks).abs() < 0.01 * ranks)
    is_part &= pl.col("nranks").is_null() | (pl.col("nranks") == ranks)
    is_whole = pl.col("share") < 1.01
    reduces, is_rooted = pl.col("reduction").is_not_null(), pl.col("root") >= 0
    # Two decimals: from 0.2 GB/s on the factor is within a few percent. Of two ranks it is 1 for AllReduce as well.
    is_exact = pl.col("busbw_bytes_per_s") > 2e8
    is_above, is_one = is_exact & (pl.col("factor") > 1.05), is_exact & ((pl.col("factor") - 1).abs() < 0.03)
    of_two = is_whole & reduces & pl.col("has_root") & (pl.col("nranks") == 2)
    inferred = (
        pl.when(is_whole & is_above)
        .then(pl.lit("AllReduce"))
        .when(is_whole & reduces & is_rooted)
        .then(pl.lit("Reduce"))
        # sendrecv_perf loops over reductions, too, and so prints "sum"; it does not check itself in place.
        .when(is_whole & reduces & pl.col("has_root") & is_one & (pl.col("nranks") > 2))
        .then(pl.lit("SendRecv"))
        .when(of_two & pl.col("is_checked_in_place"))
        .then(pl.lit("AllReduce"))
        .when(of_two & pl.col("is_checked"))
        .then(pl.lit("SendRecv"))
        .when(is_whole & ~reduces & is_rooted)
        .then(pl.lit("Broadcast"))
        .when(is_part & reduces)
        .then(pl.lit("ReduceScatter"))
        .when(is_part & ~is_rooted & pl.col("is_checked_in_place"))
        .then(pl.lit("AllGather"))
        .when(is_part & ~is_rooted & pl.col("is_checked"))
        .then(pl.lit("AlltoAll"))
    )
    by_table = judged.select("source", "table_no", inferred=inferred, share_ranks=pl.when(is_part).then(ranks))
    return (
        rows.join(by_table, on=["source", "table_no"], how="left", maintain_order="left")
        .with_columns(
            op=pl.coalesce("op", "inferred"),
            op_source=pl.when(pl.col("op").is_not_null())
            .then(pl.lit(PRINTED))
            .when(pl.col("inferred").is_not_null())
            .then(pl.lit(COLUMNS)),
            nranks=pl.coalesce("nranks", "share_ranks"),
        )
        .drop("inferred", "share_ranks")
    )


def with_given_operation(rows: pl.DataFrame, paths: Mapping[int, str], *, op: str | None = None) -> pl.DataFrame:
    """`rows` with `op` of an option or of the file's name where the table does not have it.

    Args:
        paths: path of each file by `source`.
    """
    if op is not None:
        is_open = pl.col("op_source").is_null() | (pl.col("op_source") == COLUMNS)
        name, origin = pl.lit(op), OPTION
    else:
        names = {source: operation_named_in(paths[source]) for source in rows["source"].unique()}
        name, origin = pl.col("source").replace_strict(names, return_dtype=pl.String), FILE_NAME
        is_open = pl.col("op").is_null() & name.is_not_null()
    return rows.with_columns(
        op=pl.when(is_open).then(name).otherwise("op"),
        op_source=pl.when(is_open).then(pl.lit(origin)).otherwise("op_source"),
    )
