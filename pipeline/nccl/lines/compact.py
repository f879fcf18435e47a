"""Facts of many blocks in fewer rows: counts are summed, so that a log of any length fits into memory."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines.warn_lines import template_of

_CALLER = ["source", "host", "pid", "comm"]


def compact(facts: Facts) -> Facts:
    """The same facts in fewer rows. Given all facts of its files so far, the fold makes the same rows of both."""
    return Facts({kind: _smaller(kind, frame, facts) for kind, frame in facts.frames.items()})


def _smaller(kind: str, frame: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    if kind == "coll":
        return _calls(frame, facts["init"])
    if kind == "warn":
        return _warnings(frame)
    if kind in ("tally", "process"):
        key = [name for name in frame.columns if name not in ("lines", "clean")]
        sums = [name for name in ("lines", "clean") if name in frame.columns]
        return frame.group_by(key, maintain_order=True).agg(pl.col(sums).sum()).select(frame.columns)
    if kind in ("tuning", "env", "device"):
        key = [name for name in frame.columns if name not in ("lines", "line_no")]
        summed = frame.group_by(key, maintain_order=True).agg(pl.col("lines").sum(), pl.col("line_no").min())
        return summed.select(frame.columns)
    return frame


def _calls(calls: pl.DataFrame, init: pl.DataFrame) -> pl.DataFrame:
    """Calls summed; those before and after a communicator of the same address began stay apart.

    Regardless of the host, as its names are merged later (see `hosts`).
    """
    address = [name for name in _CALLER if name != "host"]
    births = (
        init.select("line_no", *address)
        .sort("line_no")
        .with_columns(epoch=pl.int_range(1, pl.len() + 1).over(address).cast(pl.Int64))
    )
    with_epoch = calls.sort("line_no").join_asof(
        births, on="line_no", by=address, strategy="backward", check_sortedness=False
    )
    key = [*_CALLER, "op", "datatype", "count", "redop", "root", "epoch"]
    summed = (
        with_epoch.sort("last_line")
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("line_no").min(),
            pl.col("nranks").drop_nulls().first(),
            pl.col("lines").sum(),
            pl.col("last_op").drop_nulls().last(),
            pl.col("last_line").max(),
        )
    )
    return summed.select(calls.columns)


def _warnings(warns: pl.DataFrame) -> pl.DataFrame:
    """Warnings summed by template, with text, host and process of the first."""
    templates = {text: template_of(text) for text in warns["text"].unique()}
    named = warns.sort("source", "line_no").with_columns(
        shape=pl.col("text").replace_strict(templates, return_dtype=pl.String)
    )
    summed = named.group_by("source", "shape", maintain_order=True).agg(
        pl.col("line_no", "host", "pid", "text").first(), pl.col("lines").sum()
    )
    return summed.select(warns.columns)
