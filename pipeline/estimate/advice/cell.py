"""A cell of a sweep: all runs of one model on so many accelerators with one sequence length, batch and framework."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile, ask
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.search.enumerate import Request

KEY: Final = ("origin", "model", "num_nodes", "num_gpus", "seq_len", "gbs_tokens", "accelerator", "framework")


@dataclass(frozen=True)
class Cell:
    """A cell, its runs (rows of `runs`, any outcome) and the question it asks; `request` is None with a `reason`."""

    key: dict[str, Any]
    runs: pl.DataFrame
    request: Request | None
    reason: str


def is_sound() -> pl.Expr:
    """Completed runs that a ranking takes: with a step time, not quarantined, no duplicate."""
    return (
        (pl.col("status") == "completed")
        & (pl.col("step_time_s") > 0)
        & pl.col("quarantine_reason").is_null()
        & pl.col("duplicate_of").is_null()
    )


def cells(runs: pl.DataFrame, choose: ChooseProfile = choose_profile) -> Iterator[Cell]:
    """Cells of `runs`, in the order of KEY. Runs without a model, accelerators, sequence length or batch have none."""
    whole = runs.filter(
        pl.all_horizontal(pl.col("model", "num_gpus", "seq_len", "gbs_tokens", "accelerator").is_not_null())
    )
    groups = list(whole.sort(*KEY, nulls_last=True).group_by(*KEY, maintain_order=True))
    # The shape of a run that is ranked, where there is one: a mislabelled run must not define its cell.
    firsts = [group.sort(is_sound(), descending=True, maintain_order=True).head(1) for _, group in groups]
    # All at once, because reading one row costs as much as reading a thousand.
    stated = read_rows(pl.concat([whole.clear(), *firsts])).to_dicts()
    for (key, group), row in zip(groups, stated, strict=True):
        named = dict(zip(KEY, key, strict=True))
        asked, reason, _ = ask(row, choose)
        if asked is None:
            yield Cell(named, group, None, reason)
        elif named["gbs_tokens"] % named["seq_len"]:
            yield Cell(named, group, None, "its batch is no multiple of its sequence length")
        else:
            gbs = named["gbs_tokens"] // named["seq_len"]
            yield Cell(named, group, usual(Request(asked, num_gpus=named["num_gpus"], gbs=gbs), group), "")


def usual(request: Request, runs: pl.DataFrame) -> Request:
    """The question with as much context parallelism as runs use, where that is more than a search tries by itself.

    Runs that use it show that their trainer has it; `runs` are rows of the table `runs` of the cell.
    """
    return replace(request, max_cp=max([request.cp_limit, *runs["cp"].drop_nulls().to_list()]))


def startup_of(runs: pl.DataFrame) -> float | None:
    """Seconds that completed runs spent outside of their steps, median; None when no run has both times."""
    outside = runs.filter((pl.col("status") == "completed") & (pl.col("steps_logged") > 0)).select(
        (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds() - pl.col("steps_logged") * pl.col("step_time_s")
    )
    seconds = outside.to_series()
    middle = seconds.filter(seconds > 0).median()
    return float(middle) if isinstance(middle, int | float) else None
