"""`sweepscope plan status`: what became of a plan's runs, and what mends those that ran out of memory."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.errors import StoreError

if TYPE_CHECKING:
    from sweepscope.pipeline.estimate.planning.mend import Mend, Shortage
    from sweepscope.pipeline.store.home import Home

_EXAMPLE = "Example: sweepscope plan status plan-3f9a1c --mend"
MATCHED = ("completed", "running", "failed")


def add_status(actions: Any) -> argparse.ArgumentParser:
    """The action's parser, added to those of the verb."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "status",
        help="what became of a plan's runs, and what to change where memory ran out",
        description="List the runs of a plan with what was read of them: completed, running, failed or missing; "
        "measured beside predicted step time; and for one that ran out of memory the smallest change that is expected "
        "to fit, with its cost.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("plan", metavar="PLAN", help="name of the plan, such as plan-3f9a1c")
    parser.add_argument(
        "--mend", action="store_true", help="add the changed runs to the plan, for `plan launch` to write their files"
    )
    return parser


def statuses(home: Home, plan_id: str) -> list[dict[str, Any]]:
    """Rows of `plan_status` of a plan, in its order; none where nothing was published since."""
    import polars as pl

    from sweepscope.pipeline.commands.query import run_query

    try:
        rows = run_query(home, "SELECT * FROM plan_status")
    except StoreError:
        return []
    return rows.filter(pl.col("plan_id") == plan_id).sort("position").to_dicts()


def run_status(args: argparse.Namespace) -> int:
    """Show the status; the exit code."""
    from sweepscope.pipeline.ingest.plans import plan_of
    from sweepscope.pipeline.store.home import Home

    home = Home.resolve(args.home, for_writing=args.mend)
    planned = {row["planned_run_id"]: row for row in plan_of(home, args.plan).iter_rows(named=True)}
    rows = statuses(home, args.plan)
    mended = {row["mends"] for row in rows if row["mends"]}
    out_of_memory = {row["planned_run_id"]: row["run_id"] for row in rows if row["status"] == "oom"}
    ran_out = [planned[name] for name in out_of_memory]
    advice = {
        name: _advice(home, planned[name], run_id, ran_out)
        for name, run_id in out_of_memory.items()
        if name not in mended
    }
    added = _add(home, planned, advice) if args.mend else []
    counts = Counter(row["plan_outcome"] for row in rows)
    value = {
        "plan_id": args.plan,
        "counts": dict(counts),
        "matched": sum(counts[outcome] for outcome in MATCHED),
        "planned": len(rows),
        "runs": rows,
        "advice": {name: None if found is None else _as_value(found) for name, found in advice.items()},
        "added": added,
    }
    lines = [line for row in rows for line in _lines(row, advice)]
    facts = [("matched", f"{value['matched']:,} of {len(rows):,}"), *((word, f"{n:,}") for word, n in counts.items())]
    facts += [("added", ", ".join(added))] if added else []
    say_result(value, "\n".join([*lines, "", table(facts)]), as_json=args.json)
    if added:
        note(f"Write their files: sweepscope plan launch {args.plan} --framework NAME --out DIR")
    elif any(advice.values()):
        note(f"Add the changed runs to the plan: sweepscope plan status {args.plan} --mend")
    return 0


def _shortage(home: Home, run_id: str) -> Shortage | None:
    """The figures of the run's out-of-memory lines: those of the rank that needed most; None where no line has all."""
    from sweepscope.pipeline.commands.query import run_query
    from sweepscope.pipeline.estimate.planning.mend import Shortage

    sql = """SELECT oom_requested_bytes, oom_device_free_bytes, allocated_bytes, reserved_bytes
FROM gpu_oom_reports
WHERE run_id = $run_id AND oom_requested_bytes IS NOT NULL AND oom_device_free_bytes IS NOT NULL
  AND allocated_bytes IS NOT NULL AND reserved_bytes >= allocated_bytes
ORDER BY allocated_bytes + oom_requested_bytes DESC, line_no
LIMIT 1"""
    found = run_query(home, sql, {"run_id": run_id})
    return None if found.is_empty() else Shortage(*found.row(0))


def _has_expandable(home: Home, run_id: str) -> bool:
    """Whether the run's own log or snapshot shows expandable segments, however it was planned."""
    from sweepscope.pipeline.commands.query import run_query

    sql = "SELECT coalesce(bool_or(is_expandable), false) FROM memory_fit WHERE run_id = $run_id"
    return bool(run_query(home, sql, {"run_id": run_id}).item())


def _advice(home: Home, row: dict[str, Any], run_id: str, ran_out: Sequence[dict[str, Any]]) -> Mend | None:
    """What mends a run, given all runs of its plan that ran out of memory."""
    from sweepscope.pipeline.commands.named_cluster import planned_request
    from sweepscope.pipeline.commands.plan_cells import narrowed, refusing
    from sweepscope.pipeline.estimate.planning.mend import EXPANDABLE, fails_with_expandable, mend
    from sweepscope.pipeline.estimate.planning.planned_requests import choice_of
    from sweepscope.pipeline.launch.registry import FRAMEWORKS

    request = planned_request(row, home)
    launcher = next((one for one in FRAMEWORKS.values() if one.framework == row["framework"]), None)
    if launcher is not None:
        request = narrowed(request, launcher)
    refuse = refusing(launcher, request, row["model"])
    return mend(
        request,
        choice_of(row),
        refuse,
        has_expandable=row["allocator_conf"] == EXPANDABLE or _has_expandable(home, run_id),
        like_failed=fails_with_expandable(row, ran_out),
        shortage=_shortage(home, run_id),
    )


def _add(home: Home, planned: dict[str, dict[str, Any]], advice: dict[str, Mend | None]) -> list[str]:
    """Names of the runs that are added to the plan in place of those that ran out of memory."""
    import polars as pl

    from sweepscope.pipeline.estimate.planning.planned_rows import layout_columns, run_name
    from sweepscope.pipeline.ingest.plans import add_planned
    from sweepscope.schemas.tables.plans import PLANNED_RUNS

    position = max(row["position"] for row in planned.values())
    rows = []
    for name, found in advice.items():
        if found is None:
            continue
        position += 1
        row = planned[name]
        layout = layout_columns(
            found.row, gbs=row["gbs"], seq_len=row["seq_len"], tp_splits=bool(found.row["tp"] > 1 and row["tp"] > 1)
        )
        slower = 1.0 + max(found.cost, 0.0)
        believed = {name: row[name] and row[name] * (1.0 + found.cost) for name in _STEP_TIMES}
        rows.append(
            {
                **row,
                **layout,
                **believed,
                "sequence_parallel": row["sequence_parallel"] and layout["tp"] > 1,
                "planned_run_id": run_name(row["plan_id"], position),
                "position": position,
                "mends": name,
                "plan_change": found.change,
                "allocator_conf": found.allocator_conf,
                "created_at": datetime.now(UTC).replace(tzinfo=None),
                "est_step_time_s": found.row["est_step_time_s"],
                "est_mem_bytes": found.row["est_mem_bytes"],
                "oom_probability": None,
                "expected_gain": None,
                "planned_gpu_hours": row["planned_gpu_hours"] * slower,
                "walltime_s": round(row["walltime_s"] * slower / 60) * 60,
                "why": found.why,
            }
        )
    if rows:
        add_planned(home, pl.DataFrame(rows, schema=PLANNED_RUNS.polars_schema))
    return [str(row["planned_run_id"]) for row in rows]


_STEP_TIMES = ("believed_step_time_s", "believed_lo_s", "believed_hi_s")


def _as_value(found: Mend) -> dict[str, Any]:
    return vars(replace(found, row={name: value for name, value in found.row.items() if name in _SHOWN}))


_SHOWN = (
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "vpp",
    "gas",
    "mbs",
    "zero_stage",
    "dp_replicate",
    "recompute",
    "est_step_time_s",
)


def _lines(row: dict[str, Any], advice: dict[str, Mend | None]) -> list[str]:
    """The run with its outcome, and below it what there is to know."""
    name = row["planned_run_id"]
    if row["plan_outcome"] == "completed" and row["step_time_over_predicted"] is not None:
        result = f"{row['step_time_s']:.3g} s per step, {row['step_time_over_predicted']:.2f} times the prediction"
    elif row["plan_outcome"] == "completed" and row["is_trial"]:
        result = "trial on a CPU"
    else:
        result = row["status"] or ""
    lines = [f"{name}  {row['plan_outcome']:<9}  {row['layout']}  {result}".rstrip()]
    lines += [f"  in place of {row['mends']}: {row['plan_change']}"] if row["mends"] else []
    lines += [f"  it ran with {row['layout_differs']}"] if row["layout_differs"] else []
    if row["plan_outcome"] == "failed" and row["status_evidence"]:
        lines.append(f"  {row['status_evidence'][:100]}")
    if name in advice:
        found = advice[name]
        lines.append(
            "  nothing of its cell is expected to fit: take more nodes, or a smaller batch"
            if found is None
            else f"  change {found.change}: {found.cost:+.1%} step time. {found.why}"
        )
    elif row["is_mended"]:
        lines.append("  mended")
    return lines
