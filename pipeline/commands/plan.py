"""`sweepscope plan`: which runs of a sweep are worth their GPU-hours, as rows of the store; and its actions."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.commands.plan_cells import (
    model_name,
    narrowed,
    plan_lines,
    refusing,
    runs_of_cell,
    why_empty,
)
from sweepscope.pipeline.commands.plan_launch import add_launch, run_launch
from sweepscope.pipeline.commands.plan_next import add_next, run_next
from sweepscope.pipeline.commands.plan_status import add_status, run_status
from sweepscope.pipeline.commands.question import add_question_arguments, check_question, make_request
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.schemas.vocab.plans import PLAN_PURPOSE

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.planning.plan import Plan
    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.launch.framework import Framework

_EXAMPLE = (
    "Example: sweepscope plan --model 'Llama 3 8B' --nodes 4 --accelerator H100-SXM-80GB --seq-len 4096 "
    "--gbs-tokens 1048576 --budget-gpu-hours 40 --framework nanotron"
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLE
    add_question_arguments(parser, is_required=False)
    parser.add_argument("--budget-gpu-hours", type=float, help="accelerator-hours that the plan may take")
    parser.add_argument(
        "--for",
        dest="purpose",
        choices=tuple(PLAN_PURPOSE),
        default="best",
        help="what is to be found; " + "; ".join(f"{word}: {what}" for word, what in PLAN_PURPOSE.items()) + " "
        "(default: %(default)s)",
    )
    parser.add_argument("--steps", type=count, default=20, help="steps of every run (default: %(default)s)")
    parser.add_argument(
        "--startup-s", type=float, help="seconds before a first step (default: what runs of the store took, else 180)"
    )
    parser.add_argument("--most", type=count, default=20, help="runs at most (default: %(default)s)")
    parser.add_argument(
        "--margin", type=float, default=0.0, help="share of memory that the estimate leaves free (default: %(default)s)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan without keeping it")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for add in (add_launch, add_status, add_next):
        action = add(actions)  # the options of every verb may follow the action, too
        action.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="where lake and store live")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON")


def _run(args: argparse.Namespace) -> int:
    actions = {None: _make, "launch": run_launch, "status": run_status, "next": run_next}
    return actions[args.action](args)


def _check(args: argparse.Namespace) -> None:
    check_question(args, "model", "nodes", "seq_len", "gbs_tokens", "budget_gpu_hours")
    for name in ("steps", "most"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(args, name)}.")
    if not 0 < args.budget_gpu_hours < inf:
        raise UsageError(f"--budget-gpu-hours must be positive, not {args.budget_gpu_hours}.")
    if args.startup_s is not None and not 0 <= args.startup_s < inf:
        raise UsageError(f"--startup-s must not be negative, not {args.startup_s}.")


def _make(args: argparse.Namespace) -> int:
    from sweepscope.pipeline.estimate.planning.candidates import Terms
    from sweepscope.pipeline.estimate.planning.plan import Budget, make_plan
    from sweepscope.pipeline.estimate.planning.planned_rows import Heading, new_plan_id, planned_rows
    from sweepscope.pipeline.ingest.plans import add_planned, planned_runs
    from sweepscope.pipeline.launch.registry import FRAMEWORKS
    from sweepscope.pipeline.store.home import Home

    _check(args)
    launcher = FRAMEWORKS.get(args.framework)
    args.framework = launcher.framework if launcher is not None else args.framework
    home = Home.resolve(args.home, for_writing=not args.dry_run)
    model = model_name(args.model)
    requests = _requests(args, launcher)
    terms = Terms(args.steps, args.startup_s, args.margin)
    cells = [(request, runs_of_cell(home, request, model, args.framework)) for request in requests]
    budget = Budget(args.budget_gpu_hours, args.most)
    plan = make_plan(cells, args.purpose, terms, budget, refusing(launcher, requests[0], model))
    if not plan.picks:
        raise UsageError(why_empty(plan, args.budget_gpu_hours))
    now = datetime.now(UTC).replace(tzinfo=None)
    heading = Heading(args.purpose, args.framework, model, args.steps, now, args.cluster)
    taken = frozenset(planned_runs(home)["plan_id"])
    rows = planned_rows(new_plan_id(heading, vars(args), taken), plan.picks, heading)
    if not args.dry_run:
        add_planned(home, rows)
    value = {
        "plan_id": None if args.dry_run else rows["plan_id"][0],
        "planned_runs": rows.to_dicts(),
        "planned_gpu_hours": plan.hours,
        "budget_gpu_hours": args.budget_gpu_hours,
        "left_out": plan.excluded,
        "basis": plan.pools[-1].basis,
    }
    say_result(value, "\n".join([*plan_lines(rows), "", table(_facts(args, plan, rows))]), as_json=args.json)
    if not args.dry_run:
        note(f"Write its launch files: sweepscope plan launch {rows['plan_id'][0]} --framework NAME --out DIR")
    return 0


def _requests(args: argparse.Namespace, launcher: Framework | None) -> list[Request]:
    """The questions of the plan's cells: node counts doubling up to the given one for scaling, else that one."""
    largest = make_request(args)
    if launcher is not None:
        asked = largest.asked
        if reason := launcher.refusal_of_model(asked.shape.num_experts) or launcher.refusal_of_precision(
            asked.precision
        ):
            raise UsageError(f"{args.model} cannot be planned for it: {reason}. Plan without --framework.")
        largest = narrowed(largest, launcher)
    if args.purpose != "scaling":
        return [largest]
    counts = [2**power for power in range(args.nodes.bit_length()) if 2**power < args.nodes]
    per_node = largest.asked.cluster.gpus_per_node
    return [*(replace(largest, num_gpus=count * per_node) for count in counts), largest]


def _facts(args: argparse.Namespace, plan: Plan, rows: pl.DataFrame) -> list[tuple[str, Any]]:
    return [
        ("plan", "not kept" if args.dry_run else rows["plan_id"][0]),
        ("runs", f"{rows.height:,}"),
        ("GPU-hours", f"{plan.hours:.3g} of {args.budget_gpu_hours:g}"),
        ("certainty", plan.pools[-1].basis),
        *((f"left out: {reason}", f"{count:,}") for reason, count in plan.excluded.items()),
    ]


VERB = Verb(
    name="plan",
    description="Choose the layouts worth running, the most informative first: by expected gain per GPU-hour, how sure "
    "that is and the chance to run out of memory, no two alike. The plan is kept in the store (`planned_runs`). Then "
    "`plan launch` writes the files that start its runs, `plan status` shows what became of them and mends what ran "
    "out of memory, `plan next` adds what is worth running then. See docs/launch.md.",
    add_arguments=_add_arguments,
    run=_run,
)
