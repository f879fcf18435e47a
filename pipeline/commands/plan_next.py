"""`sweepscope plan next`: what a plan should run after what was measured of it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_EXAMPLE = "Example: sweepscope plan next plan-3f9a1c --budget-gpu-hours 10"


def add_next(actions: Any) -> argparse.ArgumentParser:
    """The action's parser, added to those of the verb."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "next",
        help="add to a plan what is worth running after what was measured",
        description="Ask the plan's question again with all runs that were read since, and add what promises most now. "
        "Layouts that the plan has already are not proposed again.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("plan", metavar="PLAN", help="name of the plan, such as plan-3f9a1c")
    parser.add_argument(
        "--budget-gpu-hours", type=float, default=argparse.SUPPRESS, help="accelerator-hours that the addition may take"
    )
    parser.add_argument("--most", type=count, default=argparse.SUPPRESS, help="runs at most (default: 20)")
    parser.add_argument(
        "--dry-run", action="store_true", default=argparse.SUPPRESS, help="show them without keeping them"
    )
    return parser


def run_next(args: argparse.Namespace) -> int:
    """Add the runs; the exit code."""
    from sweepscope.pipeline.commands.named_cluster import planned_request
    from sweepscope.pipeline.commands.plan_cells import (
        narrowed,
        plan_lines,
        refusing,
        runs_of_cell,
        why_empty,
    )
    from sweepscope.pipeline.estimate.advice.cell import usual
    from sweepscope.pipeline.estimate.planning.candidates import Terms
    from sweepscope.pipeline.estimate.planning.plan import Budget, make_plan
    from sweepscope.pipeline.estimate.planning.planned_rows import Heading, planned_rows
    from sweepscope.pipeline.ingest.plans import add_planned, plan_of
    from sweepscope.pipeline.launch.registry import FRAMEWORKS
    from sweepscope.pipeline.store.home import Home

    hours = args.budget_gpu_hours
    if hours is None or not 0 < hours < inf:
        raise UsageError(f"--budget-gpu-hours is required, and positive. {_EXAMPLE}")
    home = Home.resolve(args.home, for_writing=not args.dry_run)
    rows = plan_of(home, args.plan)
    first = rows.row(0, named=True)
    launcher = next((one for one in FRAMEWORKS.values() if one.framework == first["framework"]), None)
    cells = []
    for row in rows.unique("num_gpus", keep="first").sort("num_gpus").iter_rows(named=True):
        request = planned_request(row, home)
        request = usual(request, rows)
        request = narrowed(request, launcher) if launcher is not None else request
        cells.append((request, runs_of_cell(home, request, row["model"], row["framework"])))
    refuse = refusing(launcher, cells[0][0], first["model"])
    purpose, steps = first["purpose"], first["steps_planned"]
    fresh = _fresh(rows.to_dicts(), refuse)
    plan = make_plan(cells, purpose, Terms(steps), Budget(hours, args.most), fresh)
    if not plan.picks:
        raise UsageError(why_empty(plan, hours))
    now = datetime.now(UTC).replace(tzinfo=None)
    heading = Heading(purpose, first["framework"], first["model"], steps, now, first["cluster"])
    added = planned_rows(args.plan, plan.picks, heading, after=int(rows["position"][-1]))
    if not args.dry_run:
        add_planned(home, added)
    facts = [("added", f"{added.height:,}"), ("GPU-hours", f"{plan.hours:.3g} of {hours:g}")]
    facts += [(f"left out: {reason}", f"{count:,}") for reason, count in plan.excluded.items()]
    value = {"plan_id": args.plan, "planned_runs": added.to_dicts(), "planned_gpu_hours": plan.hours}
    say_result(value, "\n".join([*plan_lines(added), "", table(facts)]), as_json=args.json)
    if not args.dry_run:
        note(f"Write their files: sweepscope plan launch {args.plan} --framework NAME --out DIR")
    return 0


PLANNED = "in the plan already"


def _fresh(
    planned: list[dict[str, Any]], refuse: Callable[[dict[str, Any]], str | None]
) -> Callable[[dict[str, Any]], str | None]:
    """`refuse`, and layouts that are planned already."""
    from sweepscope.pipeline.reference.layout_text import layout_key

    there = {(row["num_gpus"], layout_key(row)) for row in planned}
    return lambda row: PLANNED if (row["num_gpus"], layout_key(row)) in there else refuse(row)
