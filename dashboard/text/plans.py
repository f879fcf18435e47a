"""Sentences of the page on plans, each computed from its rows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.numbers import count, moment, number, percent
from sweepscope.dashboard.format.symbols import PLAN_OUTCOME, STATUS
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.vocab.plans import PLAN_PURPOSE

TITLE = "Plans"
NONE = "**No runs are planned.**"
HOW_TO_PLAN = (
    "A plan is a list of configurations worth running within a budget, the most informative first. Make one, write its "
    "launch files, submit them and ingest their logs; this page then shows which runs are done and how near the "
    "predictions were."
)
_EXAMPLE: Row = {
    "model": "Llama 3 8B",
    "num_nodes": 4,
    "accelerator": "H100-SXM-80GB",
    "seq_len": 4096,
    "gbs_tokens": 2**20,
    "framework": "nanotron",
}


def commands(question: Row | None = None) -> list[str]:
    """How a plan is made, launched and read: of `question`, a row of `queries.explorer.setups`, or of an example."""
    asked = question or _EXAMPLE
    framework = f"--framework {shlex.quote(asked['framework'])}" if asked["framework"] else "--framework nanotron"
    return [
        f"sweepscope plan --model {shlex.quote(asked['model'])} --nodes {asked['num_nodes']} "
        f"--accelerator {shlex.quote(asked['accelerator'])} --seq-len {asked['seq_len']} "
        f"--gbs-tokens {asked['gbs_tokens']} {framework} --budget-gpu-hours 40",
        f"sweepscope plan launch PLAN {framework} --out launch/",
        "sweepscope ingest /path/to/logs",
    ]


HOW_TO_READ = (
    "**How to read it.** A run fills a planned one when the planned name is in its job's name or path; else when cell, "
    "framework and layout are the same. Predictions are those made when the run was planned, with their 80 % interval.",
    "**What it hides.** A log need not state every degree: only degrees that it states are compared with the plan.",
)


def list_answer(plans: Sequence[Row]) -> str:
    """How far the plans are together."""
    planned, done = (sum(row[name] for row in plans) for name in ("runs_planned", "runs_completed"))
    missing, failed = (sum(row[name] for row in plans) for name in ("runs_missing", "runs_failed"))
    left = f"{number(missing)} not run yet" if missing else "all were run"
    bad = f", {number(failed)} failed" if failed else ""
    return f"**{number(done)} of {count(planned, 'planned run')} completed**, {left}{bad}."


def answer(plan: Row, runs: Sequence[Row]) -> str:
    """How far one plan is, and how near its predictions were."""
    done = f"**{number(plan['runs_completed'])} of {count(plan['runs_planned'], 'run')} completed**"
    parts = [
        f"{number(plan[name])} {word}"
        for name, word in (
            ("runs_running", "running"),
            ("runs_failed", "failed"),
            ("runs_mended", "failed and mended"),
            ("runs_missing", "not run yet"),
        )
        if plan[name]
    ]
    return f"{', '.join([done, *parts])}.{accuracy(runs)}"


def accuracy(runs: Sequence[Row]) -> str:
    """How many measured step times lie in the interval predicted; empty where none can be compared."""
    compared = [
        row for row in runs if row["plan_outcome"] == "completed" and row["step_time_s"] and row["believed_lo_s"]
    ]
    if not compared:
        return ""
    inside = sum(row["believed_lo_s"] <= row["step_time_s"] <= row["believed_hi_s"] for row in compared)
    return f" {number(inside)} of {count(len(compared), 'step time')} within the interval that was predicted."


def meta(plan: Row) -> str:
    """What the plan is for, its cost, and when it was made."""
    spent = "" if plan["gpu_hours"] is None else f"; its runs took {_hours(plan['gpu_hours'])} so far"
    hours, made = _hours(plan["planned_gpu_hours"]), moment(plan["created_at"])
    return f"{plan['plan_id']} · to {PLAN_PURPOSE[plan['purpose']]} · {hours} planned{spent} · made {made} UTC"


def _hours(value: float | None) -> str:
    return f"{number(value, 1)} GPU-hours"


def outcome(row: Row) -> str:
    """Symbol and word of a planned run's outcome, with how it failed."""
    mark = PLAN_OUTCOME[row["plan_outcome"]].text
    if row["plan_outcome"] != "failed":
        return mark
    mended = ", mended" if row["is_mended"] else ""
    return f"{mark}: {STATUS[row['status']].word}{mended}" if row["status"] else f"{mark}{mended}"


def step(row: Row) -> str:
    """Measured beside predicted step time."""
    predicted = numbers.seconds(row["believed_step_time_s"])
    if row["step_time_s"] is None:
        return f"~{predicted}"
    return f"{numbers.seconds(row['step_time_s'])} (~{predicted} predicted)"


def chance(row: Row) -> str:
    """The chance to run out of memory, where it was predicted."""
    return numbers.MISSING if row["oom_probability"] is None else percent(row["oom_probability"], 0)


def reason(row: Row) -> str:
    """Why a run is in the plan, what it mends, and what it ran with instead."""
    parts = [
        f"in place of {row['mends']}: {row['plan_change']}" if row["mends"] else row["why"],
        f"it ran with {row['layout_differs']}" if row["layout_differs"] else "",
        (row["status_evidence"] or "")[:_EVIDENCE] if row["plan_outcome"] == "failed" else "",
    ]
    return "; ".join(part for part in parts if part)


_EVIDENCE = 140
