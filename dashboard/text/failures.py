"""Sentences of the page on failures and cost, each computed from the rows on screen."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.columns import column_label
from sweepscope.dashboard.format.numbers import count, dollars, number, part_of, percent
from sweepscope.dashboard.format.symbols import OUTCOME
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.failures import (
    Pattern,
    hours_figure,
    overall_rate,
    pattern_name,
    rate_without_cut_off,
)

NOTHING = "**No run is in this store yet.** Run **sweepscope ingest PATH** on a sweep."
HOW_TO_READ = (
    "**How to read it.** A rate is failed over completed and failed runs; its bar is the 95 % interval (Wilson), so a "
    "short bar means many runs. Red: the whole interval lies above the rate of all runs. A log that stops without a "
    "reason counts as failed, because a job that is killed leaves just that; so does a log that was copied too early.",
    "**What it hides.** Settings go together: large micro-batches may fail because they are tried with large models. "
    "Of forty settings one may look conspicuous by chance. "
    "Runs that were cancelled, are still running or left no evidence count in no rate. GPU-hours are what logs "
    "or the scheduler show; runs without either are counted, not estimated.",
)
_ALL_PRICED = 0.995  # share of the hours with a price from which all of them count as priced
_WORTH_SAYING = 0.01  # share of the lost hours from which what was kept of them is named
_CAUSE = {
    "oom": "ran out of GPU memory",
    "hang": "hung in a collective",
    "infra": "were ended by a node, the network or preemption",
    "timeout": "hit the time limit",
    "crash": "crashed",
    "unexplained": "ended without a logged reason",
}

_HOST_OOM = "ran out of host memory"


def answer(totals: Row, endings: Sequence[Row], patterns: Sequence[Pattern]) -> str:
    """How many failed, mostly why, which pattern fails most, and what that cost."""
    tried, judged, failed = totals["runs_tried"], totals["runs_judged"], totals["runs_failed"]
    if not judged:
        return f"**No run can be judged yet:** {count(tried, 'run')} tried, none completed and none failed."
    if not failed:
        whole = "The only run" if judged == 1 else f"All {number(judged)} runs that ended"
        return " ".join(part for part in (f"**{whole} completed.**", _took_nothing(totals), _held(totals)) if part)
    first = f"**{number(failed)} of {count(judged, 'run')} failed ({percent(overall_rate(totals), 0)})**"
    cause = _main_cause(endings, totals)
    return " ".join(part for part in (f"{first}{cause}.", _worst(patterns), _cost(totals), _held(totals)) if part)


def _took_nothing(totals: Row) -> str:
    hours = totals["gpu_hours"]
    return f"{'It' if totals['runs_judged'] == 1 else 'They'} took {hours_text(hours)}." if hours else ""


def _main_cause(endings: Sequence[Row], totals: Row) -> str:
    failed = totals["runs_failed"]
    causes = sorted((row for row in endings if row["outcome"] in _CAUSE), key=lambda row: -row["runs"])
    runs, words = causes[0]["runs"], _CAUSE[causes[0]["outcome"]]
    if causes[0].get("runs_host_oom"):
        words = _HOST_OOM if causes[0]["runs_host_oom"] == runs else f"{words} or {_HOST_OOM}"
    some = f"{'all' if runs == failed else number(runs)} of them"
    if causes[0]["outcome"] == "unexplained" and totals["runs_cut_off"] == runs:
        if failed == 1:
            return ": its log stops without a reason"
        return f"; {some} {'is a log that stops' if runs == 1 else 'are logs that stop'} without a reason"
    if runs == 1:
        words = words.replace("were ", "was ")
    return f": it {words}" if failed == 1 else f"; {some} {words}"


def _worst(patterns: Sequence[Pattern]) -> str:
    above = [pattern for pattern in patterns if pattern.is_above]
    if above:
        worst = above[0]
        interval = f"95 % interval {percent(worst.low, 0)} to {percent(worst.high, 0)}"
        runs = count(worst.judged, "run")
        return f"**{worst.name} fails most:** {percent(worst.rate, 0)} of its {runs} failed ({interval})."
    return "No single setting fails clearly more often than the rest." if len(patterns) > 1 else ""


def _cost(totals: Row) -> str:
    spent, lost = totals["gpu_hours"], totals["gpu_hours_lost"]
    if spent is None:
        return "Their cost is unknown: no run logged both its duration and its number of GPUs."
    if lost is None:
        return "The cost of the failures is unknown: none of them logged both its duration and its number of GPUs."
    share = f" ({part_of(lost / spent)})" if spent else ""
    return f"Failures took {hours_figure(lost)} of {hours_text(spent)}{share}{_kept(totals)}."


def _kept(totals: Row) -> str:
    """How much of the failures' hours trained steps from which later attempts went on; empty where none did."""
    kept, lost = totals["gpu_hours_kept"], totals["gpu_hours_lost"]
    if not lost or (kept or 0.0) / lost < _WORTH_SAYING:
        return ""
    return f", but {part_of(kept / lost)} of that was kept: later attempts went on from its steps"


def _held(totals: Row) -> str:
    """GPU-hours that completed runs held their GPUs for after the end; empty where none did."""
    if not totals["runs_held"]:
        return ""
    runs = count(totals["runs_held"], "completed run")
    if not totals["gpu_hours_held"]:
        return f"{runs} then held the GPUs until something ended the job."
    return f"**{runs} then held the GPUs for {hours_text(totals['gpu_hours_held'])}** until something ended the job."


def hours_text(hours: float | None) -> str:
    """GPU-hours in words.

    >>> hours_text(1.0), hours_text(1234.5), hours_text(None)
    ('1.0 GPU-hours', '1,234 GPU-hours', 'unknown')
    """
    return "unknown" if hours is None else f"{hours_figure(hours)} GPU-hours"


def meta(totals: Row, sweep: str | None, sweeps: int) -> str:
    """Scope and conditions."""
    of = f"sweep {sweep}" if sweep else count(sweeps, "sweep")
    parts = [f"{count(totals['runs_tried'], 'run attempt')} of {of}"]
    if unjudged := totals["runs_tried"] - totals["runs_judged"]:
        parts.append(f"{number(unjudged)} stopped, running or unknown {'is' if unjudged == 1 else 'are'} in no rate")
    return " · ".join(parts)


def figures(totals: Row, search: Row, price: float | None) -> list[tuple[str, str, str]]:
    """The four figures as label, value, note."""
    tried, failed = totals["runs_tried"], totals["runs_failed"]
    spent, lost = totals["gpu_hours"], totals["gpu_hours_lost"]
    share = (totals["gpu_hours_priced"] or 0) / spent if spent else 0
    known = f" for the {part_of(share)} with a price" if share < _ALL_PRICED else ""
    paid, wasted = (_paid(hours, totals[name], price, known) for hours, name in ((spent, "usd"), (lost, "usd_lost")))
    average = totals["usd"] / totals["gpu_hours_priced"] if totals["usd"] and totals["gpu_hours_priced"] else None
    return [
        ("Runs that failed", *_failure_rate(totals)),
        ("GPU-hours in all", *_hours(spent, tried, totals["runs_without_gpu_hours"], paid)),
        ("GPU-hours on failures", *_hours(lost, failed, totals["failures_without_gpu_hours"], wasted)),
        ("GPU-hours until the winners had run", *_search(search, price or (average if not known else None))),
    ]


def _paid(hours: float | None, usd: float | None, price: float | None, known: str) -> str:
    """What hours cost: at the price on the page, else at those of the accelerators, of what part of them is `known`."""
    if price and hours is not None:
        return _dollars(hours, price)
    return f"{dollars(usd)}{known}" if usd else ""


def _failure_rate(totals: Row) -> tuple[str, str]:
    """Value and note: the failure rate with its interval."""
    rate = overall_rate(totals)
    if rate is None:
        return "unknown", ""
    interval = f"{percent(totals['failure_rate_low'], 0)} to {percent(totals['failure_rate_high'], 0)}"
    return percent(rate, 0), f"95 % interval {interval}{_without_cut_off(totals)}"


def _without_cut_off(totals: Row) -> str:
    without, cut_off = rate_without_cut_off(totals), totals["runs_cut_off"]
    if not cut_off or without is None:
        return ""
    return f"; {percent(without, 0)} without {count(cut_off, 'log that just stops', 'logs that just stop')}"


def _hours(hours: float | None, runs: int, unknown: int, paid: str) -> tuple[str, str]:
    """Value and note: GPU-hours of `runs`, of which `unknown` have none, with what was `paid` for them."""
    if hours is None:
        return "unknown", f"{count(runs, 'run')}, no duration or no number of GPUs logged"
    notes = [paid, f"unknown for {number(unknown)} of {count(runs, 'run')}" if unknown else ""]
    return hours_figure(hours), "; ".join(note for note in notes if note) or "all runs known"


def _search(search: Row, price: float | None) -> tuple[str, str]:
    """Value and note: GPU-hours that passed before the winners were found."""
    until, whole = search["gpu_hours_until_winner"], search["gpu_hours_of_cells_in_order"]
    if until is None or not whole:
        return "unknown", "the order of the runs is not known" if search["cells_answered"] else "no cell has a winner"
    cells = f"in {number(search['cells_in_order'])} of {count(search['cells_answered'], 'cell')}"
    notes = [_dollars(until, price), f"{percent(until / whole, 0)} of {hours_figure(whole)} {cells}"]
    return hours_figure(until), "; ".join(note for note in notes if note)


def _dollars(hours: float, price: float | None) -> str:
    return f"${number(hours * price)}" if price else ""


def value_label(dimension: str, value: str, others: int = 0) -> str:
    """A value of a dimension on an axis.

    >>> value_label("num_nodes", "4"), value_label("tp", "8"), value_label("sweep", "others", 14)
    ('4 nodes', 'TP8', '14 others')
    """
    if others:
        return count(others, "other")
    nouns = {"num_nodes": "node", "num_gpus": "GPU"}
    if dimension in nouns and value.isdigit():
        return count(int(value), nouns[dimension])
    plain = ("sweep", "framework", "model", "accelerator", "day", "host")
    return value if dimension in plain else pattern_name(dimension, value)


def dimension_option(dimension: str) -> str:
    """A dimension in the selector."""
    named = {"day": "Day", "host": "Host", "strategy": "Strategy", "mbs": "Micro-batch", "zero_stage": "ZeRO stage"}
    return named.get(dimension) or column_label(dimension)


def endings_hover(label: str, row: Row) -> str:
    """Name, then each ending with its number."""
    parts = [f"{mark.text}: {number(row[name])}" for name, mark in OUTCOME.items() if row.get(name)]
    return "<br>".join([f"<b>{label}</b>, {count(row['runs_tried'], 'run attempt')}", *parts])


def endings_alt(dimension: str, rows: int, totals: Row) -> str:
    """What the stacked bars show."""
    return (
        f"Run attempts by {dimension_option(dimension).lower()} and ending in {count(rows, 'bar')}: "
        f"{number(totals['runs_failed'])} of {number(totals['runs_judged'])} failed."
    )


def patterns_alt(patterns: Sequence[Pattern]) -> str:
    """What the dots show."""
    listed = ", ".join(f"{pattern.name} {percent(pattern.rate, 0)}" for pattern in patterns[:3])
    return f"Failure rate with 95 % interval of {count(len(patterns), 'setting')}: {listed}."


def hours_alt(endings: Sequence[Row]) -> str:
    """What the bars of GPU-hours show."""
    listed = ", ".join(f"{OUTCOME[row['outcome']].word} {hours_text(row['gpu_hours'])}" for row in endings)
    return f"GPU-hours by how runs ended: {listed}."
