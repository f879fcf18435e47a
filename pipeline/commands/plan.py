"""`sweepscope plan`: which runs of a sweep are worth their GPU-hours, as rows of the store."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.commands.question import add_question_arguments, check_question, make_request
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.schemas.vocab.plans import PLAN_PURPOSE

if TYPE_CHECKING:
    import polars as pl

    from sweepscope.pipeline.estimate.planning.plan import Plan
    from sweepscope.pipeline.estimate.search.enumerate import Request
    from sweepscope.pipeline.store.home import Home

CP_TOKENS = 4096
"""Tokens of a sequence for each rank of context parallelism by default: below, it splits what one rank holds easily."""
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
    parser.add_argument("--steps", type=int, default=20, help="steps of every run (default: %(default)s)")
    parser.add_argument(
        "--startup-s", type=float, help="seconds before a first step (default: what runs of the store took, else 180)"
    )
    parser.add_argument("--most", type=int, default=20, help="runs at most (default: %(default)s)")
    parser.add_argument(
        "--margin", type=float, default=0.0, help="share of memory that the estimate leaves free (default: %(default)s)"
    )
    parser.add_argument(
        "--max-cp", type=int, help=f"largest degree of context parallelism (default: one per {CP_TOKENS:,} tokens)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan without keeping it")


def _run(args: argparse.Namespace) -> int:
    return _make(args)


def _check(args: argparse.Namespace) -> None:
    check_question(args, "model", "nodes", "accelerator", "seq_len", "gbs_tokens", "budget_gpu_hours")
    for name in ("steps", "most", "max_cp"):
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
    from sweepscope.pipeline.store.home import Home

    _check(args)
    home = Home.resolve(args.home, for_writing=not args.dry_run)
    model = model_name(args.model)
    requests = _requests(args)
    terms = Terms(args.steps, args.startup_s, args.margin)
    cells = [(request, runs_of_cell(home, request, model, args.framework)) for request in requests]
    plan = make_plan(cells, args.purpose, terms, Budget(args.budget_gpu_hours, args.most))
    if not plan.picks:
        raise UsageError(why_empty(plan, args.budget_gpu_hours))
    now = datetime.now(UTC).replace(tzinfo=None)
    heading = Heading(args.purpose, args.framework, model, args.steps, now)
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
        note("Give jobs or directories these names: the view plan_status joins what `sweepscope ingest` reads of them.")
    return 0


def _requests(args: argparse.Namespace) -> list[Request]:
    """The questions of the plan's cells: node counts doubling up to the given one for scaling, else that one."""
    largest = make_request(args)
    largest = replace(largest, max_cp=args.max_cp or max(args.seq_len // CP_TOKENS, 1))
    if args.purpose != "scaling":
        return [largest]
    counts = [2**power for power in range(args.nodes.bit_length()) if 2**power < args.nodes]
    per_node = largest.asked.cluster.gpus_per_node
    return [*(replace(largest, num_gpus=count * per_node) for count in counts), largest]


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
    "that is and the chance to run out of memory, no two alike. The plan is kept in the store (`planned_runs`); "
    "`plan_status` joins the runs that fill it.",
    add_arguments=_add_arguments,
    run=_run,
)
