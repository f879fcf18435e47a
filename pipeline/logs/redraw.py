"""Formats that print the same step several times, of which the last print is the right one."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import Facts


def last_of_each_step(facts: Facts) -> Facts:
    """Of consecutive facts of one step, rank and launch, the last: a bar moves before it is given its new values."""
    order = ["source", "line_no"]
    launches = facts.events.filter(pl.col("kind") == "launch").select(*order, launch="line_no").unique().sort(order)
    steps = facts.steps.sort(order, maintain_order=True)
    marked = steps.join_asof(launches, on="line_no", by="source", strategy="backward", check_sortedness=False)
    following = pl.col("step").shift(-1).over("source", "rank", "launch")
    is_last = pl.col("step").is_null() | pl.col("step").ne_missing(following)
    return Facts(marked.filter(is_last).drop("launch"), facts.settings, facts.gauges, facts.events)
