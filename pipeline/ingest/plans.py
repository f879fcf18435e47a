"""The plans of a home: rows of `planned_runs`, which no ingest touches."""

from __future__ import annotations

import difflib

import polars as pl

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Change, Lake
from sweepscope.pipeline.store.lock import exclusive
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.tables.plans import PLANNED_RUNS

NAME = PLANNED_RUNS.name


def planned_runs(home: Home) -> pl.DataFrame:
    """All planned runs, plan by plan. Raises StoreError for a damaged lake."""
    return Lake(home).read(NAME).sort("created_at", "plan_id", "position")


def plan_of(home: Home, plan_id: str) -> pl.DataFrame:
    """Rows of one plan, the most informative first. Raises UsageError naming the plans that there are."""
    every = planned_runs(home)
    rows = every.filter(pl.col("plan_id") == plan_id)
    if rows.is_empty():
        known = every["plan_id"].unique(maintain_order=True).to_list()
        near = difflib.get_close_matches(plan_id, known, n=3) or known[-5:]
        has = f"There are: {', '.join(near)}." if near else "There are none yet: `sweepscope plan --help` shows how."
        raise UsageError(f"No plan {plan_id} in {home.path}. {has}")
    return rows.sort("position")


def add_planned(home: Home, rows: pl.DataFrame) -> None:
    """Keep rows beside those that are there, in place of planned runs of the same name, and publish them.

    Raises StoreError when another process writes, or the disk does not take it; ValueError for rows that break the
    table's rules, which are ours to make.
    """
    checked = validate(PLANNED_RUNS, rows)
    if checked.rejects.height:
        raise ValueError(f"planned runs break a rule: {checked.rejects['reason'].unique().sort().to_list()}")
    new = checked.valid
    with exclusive(home.lake / "plans.lock", "keeping a plan"):
        lake = Lake(home)

        def with_kept() -> Change:
            kept = lake.read(NAME).join(new, on="planned_run_id", how="anti")
            return {NAME: pl.concat([kept, new]).sort("planned_run_id")}, ()

        lake.change(with_kept)
    publish(home)
