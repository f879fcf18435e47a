"""Failed workers from events: torchrun's table of failures, and the rank and host that failed first."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.evidence.launchers import TABLE_LINE
from sweepscope.pipeline.logs.expressions import cases
from sweepscope.pipeline.logs.facts import EVENT_FACTS, conform

_FIELD = r"^(time|host|rank|exitcode|error_file|traceback)\s*: (.*)$"
_ROOT = r"^Root Cause(?: \(first observed failure\))?:"


def fold_tables(events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS with one event per failed worker in place of the lines of torchrun's tables.

    A table lists the other failures first and the root cause last. A worker has up to six lines, perhaps in two blocks;
    its event has the number of the first line, and time, rank and host of the worker.
    """
    lines = events.filter(pl.col("kind") == TABLE_LINE).sort("source", "line_no", maintain_order=True)
    if lines.is_empty():
        return events
    field, value = (pl.col("text").str.extract(_FIELD, group) for group in (1, 2))
    is_title = pl.col("text").str.contains(_ROOT)
    rows = lines.with_columns(field=field, value=value, is_title=is_title)
    # `time` is the first line of a worker. A gap means that lines of the table are missing.
    is_new = (pl.col("field") == "time").fill_null(value=False) | (pl.col("line_no").diff() > 8).fill_null(value=True)
    rows = rows.with_columns(
        worker=(is_new | pl.col("is_title")).cast(pl.Int64).cum_sum().over("source"),
        is_root=(pl.col("is_title").shift(1).over("source") & (pl.col("line_no").diff().over("source") <= 2)),
    ).drop_nulls("field")
    root = pl.when(pl.col("is_root").any()).then(pl.lit("root cause: ")).otherwise(pl.lit("")).first()
    fields = pl.concat_str(pl.col("field"), pl.lit(" "), pl.col("value").str.strip_chars()).str.join(", ")
    workers = rows.group_by("source", "worker", maintain_order=True).agg(
        pl.col("line_no").first(),
        pl.col("ts").drop_nulls().first(),
        kind=pl.lit(TABLE_LINE).first(),
        rank=pl.col("value")
        .filter(pl.col("field") == "rank")
        .str.extract(r"^(\d+)")
        .first()
        .cast(pl.Int64, strict=False),
        host=pl.col("value").filter(pl.col("field") == "host").str.strip_chars().first(),
        text=pl.concat_str(root, fields),
    )
    others = events.filter(pl.col("kind") != TABLE_LINE)
    known = workers.filter(pl.col("rank").is_not_null() | pl.col("host").is_not_null())
    return pl.concat([others, conform(known, EVENT_FACTS)]).sort("source", "line_no", maintain_order=True)


_DIED = ("exit_code", "sigkill", "host_oom", "child_failed")
_RAISED = ("oom", "exception", "nccl_error", "hang")


def first_failures(events: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `first_failed_rank`, `first_failed_host`.

    torchrun's table is preferred, since it has times: the earliest failure, of equal ones the root cause of a node, of
    those the one printed first. Next comes the first line of a launcher with a rank or a host, then the first error
    with a rank, which is weaker: lines of several ranks reach a log in any order.
    """
    named = events.filter(
        pl.col("run_id").is_not_null() & (pl.col("rank").is_not_null() | pl.col("host").is_not_null())
    )
    order = cases(
        (pl.col("kind") == TABLE_LINE, 0), (pl.col("kind").is_in(_DIED), 1), (pl.col("kind").is_in(_RAISED), 2)
    )
    ranked = named.with_columns(
        order=order,
        failed_at=pl.when(order == 0).then("ts"),
        is_echo=pl.when(order == 0).then(~pl.col("text").str.starts_with("root cause")),
    ).drop_nulls("order")
    first = ranked.sort("run_id", "order", "failed_at", "is_echo", "line_no", nulls_last=True, maintain_order=True)
    once = first.unique("run_id", keep="first", maintain_order=True)
    return once.select("run_id", first_failed_rank="rank", first_failed_host="host")
