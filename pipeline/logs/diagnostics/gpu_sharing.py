"""GPU memory of co-tenants: processes that another run left behind, or that share the card.

torch lists the processes of the card in its out-of-memory text (c10/cuda/CUDACachingAllocator.cpp, since 2.1, where
NVML is available): `Process 745081 has 86.44 GiB memory in use. Including non-PyTorch memory, this process has 6.62
GiB memory in use.` Inside a PID namespace the process does not recognise itself in that list: it is the one that uses
what PyTorch reserved. Older texts give total, free and reserved memory; what those leave unexplained is foreign above
FOREIGN_UNLISTED_BYTES or FOREIGN_UNLISTED_SHARE of the card.

Co-tenants caused the error if the request would have fitted into their memory and what was free, and they used at least
FOREIGN_CAUSE_SHARE of the card. The thresholds are those of `schemas.thresholds` that begin with FOREIGN.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.evidence.symptoms import SMI_PROCESS
from sweepscope.pipeline.text.quantities import size
from sweepscope.schemas.thresholds import (
    FOREIGN_BYTES,
    FOREIGN_CAUSE_SHARE,
    FOREIGN_SHARE,
    FOREIGN_UNLISTED_BYTES,
    FOREIGN_UNLISTED_SHARE,
)

_SIZE = r"([\d.]+ [KMGT]?i?B|[\d.]+ bytes)"
_LISTED = rf"Process (\d+) has {_SIZE} memory in use"
_ROUNDING = 0.98  # sizes have two decimals


def foreign_memory(oom: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows of kinds `oom_by_others` and `gpu_shared`, one per run: the line in which co-tenants used most.

    `oom`: FINDING rows of kind `oom`.
    """
    rows = _figures(oom)
    foreign = pl.col("foreign_bytes")
    fits = (pl.col("free_bytes") + foreign) >= pl.col("request_bytes")
    is_notable = (foreign >= FOREIGN_BYTES) | (foreign >= FOREIGN_SHARE * pl.col("total_bytes"))
    rows = rows.filter(is_notable & (foreign <= pl.col("total_bytes")))
    if rows.is_empty():
        return pl.DataFrame(schema=FINDING)
    is_cause = fits & (foreign >= FOREIGN_CAUSE_SHARE * pl.col("total_bytes"))
    rows = rows.with_columns(
        fits=fits,
        kind=pl.when(is_cause).then(pl.lit("oom_by_others")).otherwise(pl.lit("gpu_shared")),
        alike=pl.len().over("run_id"),
    )
    rows = rows.sort("foreign_bytes", "line_no", descending=[True, False]).unique(
        "run_id", keep="first", maintain_order=True
    )
    return finding(rows.with_columns(text=_text()))


def _figures(oom: pl.DataFrame) -> pl.DataFrame:
    """`oom` with `total_bytes`, `free_bytes`, `request_bytes`, `own_bytes` and `foreign_bytes` of its text."""
    text = pl.col("text")

    def printed(pattern: str) -> pl.Expr:
        return size(text.str.extract(pattern)).cast(pl.Float64)

    rows = oom.with_columns(
        key=pl.int_range(pl.len()),
        total_bytes=pl.coalesce(printed(rf"total capaci?ty of {_SIZE}"), printed(rf"; {_SIZE} total capacity")),
        free_bytes=pl.coalesce(printed(rf"of which {_SIZE} is free"), printed(rf"; {_SIZE} free")),
        request_bytes=printed(rf"Tried to allocate {_SIZE}"),
        this_bytes=printed(rf"this process has {_SIZE} memory in use"),
        reserved_bytes=pl.coalesce(
            printed(rf"; {_SIZE} reserved in total by PyTorch"),
            printed(rf"allocated memory {_SIZE} is allocated by PyTorch")
            + printed(rf"{_SIZE} is reserved by PyTorch but unallocated").fill_null(0),
            printed(rf"; {_SIZE} already allocated"),
        ),
    )
    listed = rows.select("key", hit=text.str.extract_all(_LISTED)).explode("hit").drop_nulls("hit")
    listed = listed.select(
        "key", pid=pl.col("hit").str.extract(_LISTED, 1), bytes=size(pl.col("hit").str.extract(_LISTED, 2))
    ).sort("key", "bytes", descending=[False, True])
    by_line = listed.group_by("key", maintain_order=True).agg(
        listed_bytes=pl.col("bytes").sum().cast(pl.Float64),
        first_bytes=pl.col("bytes").first().cast(pl.Float64),
        pids="pid",
        sizes="bytes",
    )
    rows = rows.join(by_line, on="key", how="left", maintain_order="left")
    # Inside a PID namespace: the first process of the list is this one, if it uses what PyTorch reserved.
    is_first_own = pl.col("this_bytes").is_null() & (pl.col("first_bytes") >= _ROUNDING * pl.col("reserved_bytes"))
    is_first_own = is_first_own.fill_null(value=False)
    own_bytes = pl.coalesce("this_bytes", pl.when(is_first_own).then("first_bytes"), "reserved_bytes")
    named = pl.col("listed_bytes").fill_null(0) - pl.when(is_first_own).then("first_bytes").otherwise(0.0)
    rows = rows.with_columns(own_bytes=own_bytes, named_bytes=named, skipped=is_first_own.cast(pl.Int64))
    hidden = pl.col("total_bytes") - pl.col("free_bytes") - pl.col("own_bytes") - pl.col("named_bytes")
    unexplained = pl.max_horizontal(
        pl.lit(float(FOREIGN_UNLISTED_BYTES)), FOREIGN_UNLISTED_SHARE * pl.col("total_bytes")
    )
    rows = rows.with_columns(hidden_bytes=pl.when(hidden >= unexplained).then(hidden).otherwise(0.0).fill_null(0))
    return rows.with_columns(foreign_bytes=pl.col("named_bytes") + pl.col("hidden_bytes"))


def _text() -> pl.Expr:
    first = pl.col("pids").list.get(pl.col("skipped"), null_on_oob=True)
    first_bytes = pl.col("sizes").list.get(pl.col("skipped"), null_on_oob=True)
    count = pl.col("pids").list.len().cast(pl.Int64) - pl.col("skipped")
    named = pl.when(first.is_not_null()).then(
        pl.concat_str(
            pl.format(" (process {}: {} GiB", first, _gib(first_bytes)),
            pl.when(count > 1).then(pl.format(", and {} more", count - 1)),
            pl.lit(")"),
            ignore_nulls=True,
        )
    )
    hidden = pl.when(first.is_null()).then(pl.lit(" (not listed: memory that is neither free nor this process's)"))
    verdict = pl.when("fits").then(
        pl.format("; without them the requested {} GiB would have fitted", _gib(pl.col("request_bytes")))
    )
    lines = pl.when(pl.col("alike") > 1).then(pl.format("; reported in {} lines", "alike"))
    return pl.concat_str(
        pl.format(
            "other processes held {} of the card's {} GiB", _gib(pl.col("foreign_bytes")), _gib(pl.col("total_bytes"))
        ),
        named,
        hidden,
        pl.format(", this process {} GiB", _gib(pl.col("own_bytes"))),
        verdict.otherwise(pl.lit("; the request would not have fitted without them either")),
        lines,
        ignore_nulls=True,
    )


def _gib(size_bytes: pl.Expr) -> pl.Expr:
    return (size_bytes / 2**30).round(2)


def leftovers(listed: pl.DataFrame, trainer_starts: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows for processes that nvidia-smi lists before the trainer printed anything: they belong to others.

    Args:
        listed: FINDING rows with lines of nvidia-smi's table of processes.
        trainer_starts: `run_id`, `first_line`: the trainer's first line; runs without one are left out.
    """
    text = pl.col("text")
    rows = listed.join(trainer_starts, on="run_id").filter(pl.col("line_no") < pl.col("first_line"))
    rows = rows.with_columns(
        gpu=text.str.extract(SMI_PROCESS, 1),
        pid=text.str.extract(SMI_PROCESS, 2),
        name=text.str.extract(SMI_PROCESS, 3),
        mib=text.str.extract(SMI_PROCESS, 4).cast(pl.Int64, strict=False),
    ).filter(pl.col("mib") * 2**20 >= FOREIGN_BYTES)
    rows = rows.with_columns(alike=pl.len().over("run_id")).sort("mib", "line_no", descending=[True, False])
    rows = rows.unique("run_id", keep="first", maintain_order=True)
    more = pl.when(pl.col("alike") > 1).then(pl.format(", and {} more such processes", pl.col("alike") - 1))
    first = pl.format(
        "before the trainer began, process {} ({}) held {} GiB of GPU {}",
        "pid",
        "name",
        (pl.col("mib") / 1024).round(1),
        "gpu",
    )
    return finding(rows.with_columns(text=pl.concat_str(first, more, ignore_nulls=True)), "gpu_shared")
