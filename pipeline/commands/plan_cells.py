"""Cells of a plan for its commands: runs of the store, what a framework can run, and lines of text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.errors import StoreError

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.planning.plan import Plan
    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.launch.framework import Framework
    from sweepscope.pipeline.store.home import Home


def narrowed(request: Request, launcher: Framework) -> Request:
    """The question among layouts that a framework can run."""
    schedules = tuple(word for word in request.schedules if word == "1f1b" or word in launcher.schedules)
    groups = ("node",) if launcher.name == "litgpt" else request.shard_groups
    return replace(request, **launcher.limits, schedules=schedules, shard_groups=groups)


def refusing(launcher: Framework | None, request: Request, model: str) -> Callable[[dict[str, Any]], str | None]:
    """Why the framework that is to run a plan cannot run a layout; nothing is refused without one."""
    if launcher is None:
        return lambda _row: None
    shape, per_node = request.asked.shape, request.asked.cluster.gpus_per_node

    def refuse(row: dict[str, Any]) -> str | None:
        nodes = max(row["num_gpus"] // per_node, 1)
        return launcher.refusal({**row, "num_nodes": nodes, "model": model, "num_layers": shape.num_layers})

    return refuse


def model_name(name: str) -> str:
    """Name of a model as the store has it; a config.json is called by its folder."""
    from sweepscope.pipeline.reference.models import find_model

    if name.endswith(".json"):
        path = PurePath(name)
        return path.parent.name or path.stem
    row = find_model(name)
    return str(row["model"]) if row is not None else name


def runs_of_cell(home: Home, request: Request, model: str, framework: str | None) -> pl.DataFrame:
    """Measured runs of a cell in the store, or else simulated ones; none without a store."""
    import polars as pl

    from sweepscope.pipeline.commands.query import run_query
    from sweepscope.schemas.tables.runs import RUNS

    try:
        runs = run_query(home, "SELECT * FROM runs WHERE origin <> 'published'")
    except StoreError:  # nothing was published yet
        return RUNS.empty()
    of_cell = runs.filter(
        (pl.col("model") == model)
        & (pl.col("num_gpus") == request.num_gpus)
        & (pl.col("seq_len") == request.asked.seq_len)
        & (pl.col("gbs_tokens") == request.gbs * request.asked.seq_len)
        & (pl.col("accelerator") == request.asked.cluster.accelerator)
    )
    if framework is not None:
        of_cell = of_cell.filter(pl.col("framework") == framework)
    measured = of_cell.filter(pl.col("origin") == "measured")
    return measured if measured.height else of_cell


def why_empty(plan: Plan, budget: float) -> str:
    """One line for a plan without runs."""
    from sweepscope.pipeline.estimate.planning.plan import TOO_DEAR

    if TOO_DEAR in plan.excluded:
        least = min(float(pool.hours.min()) for pool in plan.pools if pool.hours.size)
        return f"No run fits into --budget-gpu-hours {budget:g}: the cheapest takes {least:.2g}. Give more of them."
    if any(pool.best is not None for pool in plan.pools) and any(pool.rows.height for pool in plan.pools):
        return "Nothing is left to plan: what fits was measured, or promises less than 0.1 % over the best."
    reason = next(iter(plan.excluded), "nothing to try")
    return f"No layout can be planned; most often: {reason}. Take more nodes, or another batch."


def plan_lines(rows: pl.DataFrame) -> list[str]:
    """Two lines per planned run: its layout with figures, and why."""
    lines = []
    for row in rows.iter_rows(named=True):
        gain = "" if row["expected_gain"] is None else f", {row['expected_gain']:+.1%} expected"
        oom = "" if row["oom_probability"] is None else f", {row['oom_probability']:.0%} OOM"
        cost = f"{row['planned_gpu_hours']:.3g} GPU-hours, {row['walltime_s'] // 60} min limit"
        lines += [
            f"{row['planned_run_id']}  {row['num_nodes']} node{'s' if row['num_nodes'] > 1 else ''}  {row['layout']}",
            f"  {row['believed_step_time_s']:.3g} s per step{gain}{oom}, {cost}",
        ]
        lines += [f"  {row['plan_change']}"] if row["plan_change"] else []
        lines += [f"  {row['why']}"] if row["why"] else []
    return lines
