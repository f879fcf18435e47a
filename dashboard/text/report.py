"""Sentences that only a report has: the question that the runs put, what a period brought, what is left to run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.implementation import framework_name
from sweepscope.dashboard.format.numbers import NBSP, count, number, percent, token_count
from sweepscope.dashboard.queries.query import Row

_NAMED = 3


def question(row: Row) -> str:
    """The question that the runs of `queries.report.extent` answer, as far as their logs state it."""
    models = listed(row["models"], "model") or "a model that no log names"
    where = listed(row["accelerators"], "kind of accelerator", "kinds of accelerator")
    on = [_span(row["fewest_nodes"], row["most_nodes"], "node"), f"of {where}" if where else ""]
    place = " ".join(part for part in on if part)
    batch = _tokens(row["least_gbs_tokens"], row["most_gbs_tokens"])
    sequence = _tokens(row["least_seq_len"], row["most_seq_len"])
    given = [f"sequences of {sequence} tokens" if sequence else "", f"{batch} tokens per step" if batch else ""]
    at = " and ".join(part for part in given if part)
    return (
        f"Which layout trains **{models}** fastest{f' on **{place}**' if place else ''}"
        f"{f', at {at}' if at else ''}? {count(row['layouts'], 'layout')} {_was(row['layouts'])} tried in "
        f"{count(row['runs_tried'], 'run')}, of which {number(row['runs_completed'])} completed."
    )


def question_figures(row: Row) -> list[tuple[str, str, str]]:
    """What was spent, when, and with which frameworks: label, value, remark."""
    unknown = row["runs_without_gpu_hours"]
    remark = f"of {count(unknown, 'run')} unknown" if unknown else "all runs together"
    hours = numbers.MISSING if row["gpu_hours"] is None else f"{number(row['gpu_hours'], 1)}{NBSP}GPU·h"
    figures = [("Runs", number(row["runs_tried"]), f"{number(row['runs_completed'])} completed")]
    figures.append(("GPU-hours", hours, remark))
    if row["frameworks"]:
        names = [str(framework_name(name)) for name in row["frameworks"]]
        figures.append(("Frameworks", number(len(names)), ", ".join(names)))
    if row["first_at"] is not None:
        figures.append(("First to last run", numbers.moment(row["first_at"]), f"to {numbers.moment(row['last_at'])}"))
    return figures


def recent(row: Row, leads: Sequence[Row], day: date) -> str:
    """What came since a day: runs, how they ended, and which cells another layout leads."""
    since = f"{day.day} {day:%b %Y}"
    if not row["runs_tried"]:
        return f"No run that logs a time has ended since {since}."
    first = [lead for lead in leads if lead["layout_before"] is None]
    taken = [lead for lead in leads if lead["layout_before"] is not None]
    parts = [f"{count(len(taken), 'cell')} {_has(len(taken))} a new fastest layout"] if taken else []
    parts += [f"{count(len(first), 'cell')} {_has(len(first))} a first result"] if first else []
    change = " and ".join(parts) or "no cell has a new fastest layout"
    lost = f", which took {number(row['gpu_hours_lost'], 1)} GPU-hours" if row["gpu_hours_lost"] else ""
    return (
        f"Since {since}: **{count(row['runs_tried'], 'run')}**, of which {number(row['runs_completed'])} completed and "
        f"{number(row['runs_failed'])} failed{lost}; {change}."
    )


def recent_meta(row: Row) -> str:
    """Runs without a time, which belong to no period."""
    undated = row["runs_undated"]
    return f"{count(undated, 'run')} without a time in the log {_was(undated)} not counted" if undated else ""


def next_answer(rows: Sequence[Row], cells: int, missing: int) -> str:
    """What promises most per GPU-hour over all searched cells, and how many planned runs are left.

    `rows` are the proposals, the first the best; `cells` were searched; `missing` planned runs have no run.
    """
    plan = f" {count(missing, 'planned run')} {_is(missing)} still to be made or mended." if missing else ""
    if not rows:
        searched = f"In {count(cells, 'cell')} no" if cells else "No"
        return f"{searched} untried layout is expected to beat the fastest measured one.{plan}"
    top = rows[0]
    chance = f", with a chance of {percent(top['chance'], 0)} to be faster" if top["chance"] is not None else ""
    return (
        f"**{top['layout']}** for {top['model']} on {count(top['num_nodes'], 'node')} promises most per GPU-hour: "
        f"~{percent(top['gain'])} more throughput for {number(top['test_gpu_hours'], 2)} GPU-hours{chance}.{plan}"
    )


def listed(names: Sequence[str], singular: str, plural: str | None = None) -> str:
    """Names in a sentence, or how many there are where they are many.

    >>> listed(["a"], "model"), listed(["a", "b", "c"], "model"), listed("abcd", "model"), listed([], "model")
    ('a', 'a, b and c', '4 models', '')
    """
    if len(names) > _NAMED:
        return count(len(names), singular, plural)
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _span(low: int | None, high: int | None, noun: str) -> str:
    if low is None or high is None:
        return ""
    return count(low, noun) if low == high else f"{number(low)} to {count(high, noun)}"


def _tokens(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return ""
    return token_count(low) if low == high else f"{token_count(low)} to {token_count(high)}"


def _was(amount: int) -> str:
    return "was" if amount == 1 else "were"


def _has(amount: int) -> str:
    return "has" if amount == 1 else "have"


def _is(amount: int) -> str:
    return "is" if amount == 1 else "are"
