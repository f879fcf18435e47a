"""What came out of the runs of a comparison, as lines with a text per column."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sweepscope.dashboard.format import numbers, printed_mfu
from sweepscope.dashboard.format.numbers import count, dollars, memory, moment, number, percent, seconds, significant
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.compare import Line, Subject
from sweepscope.dashboard.view_models.frontier import published_on

Text = Callable[[Row], str | None]


def lines(columns: Sequence[Subject]) -> list[Line]:
    """Outcome, speed, memory and cost of each column; what no column has is left out. Of groups medians and ranges."""
    found = [Line("status", "Outcome", tuple(_outcome(one) for one in columns))]
    found += [Line(name, label, tuple(_middle(one, name, text) for one in columns)) for name, label, text in _NUMBERS]
    found += [Line(name, label, tuple(_each(one, text) for one in columns)) for name, label, text in _TEXTS]
    return [line for line in found if any(text is not None for text in line.texts)]


def main(columns: Sequence[Subject], found: Sequence[Line]) -> list[Line]:
    """The lines that decide: without the reason of an outcome where all completed, and with what a publication states
    where one of the columns is one.
    """
    runs = [run for one in columns for run in one.runs]
    kept = {
        "status",
        "tokens_per_s_per_gpu",
        "usd_per_m_tokens",
        "step_time_s",
        "mfu",
        "mem_peak_allocated_bytes",
        "mem_peak_reserved_bytes",
    }
    if any(run["status"] != "completed" for run in runs):
        kept.add("status_evidence")
    if any((run["mfu"] is None and run["mfu_logged"] is not None) or printed_mfu.differs(run) for run in runs):
        kept.add("mfu_logged")
    if len({run["peak_tflops"] for run in runs if run["mfu"] is not None}) > 1:
        kept.add("mfu_basis")
    if any(run["comparability"] not in (None, "comparable") for run in runs):
        kept.add("comparability")
    if any(run["comparability"] is not None for run in runs):
        kept |= {"hfu", "published_on", "gpu_hours_per_t_tokens", "goodput_pct", "cost_usd"}
    return [line for line in found if line.name in kept]


def _outcome(one: Subject) -> str:
    by_status: dict[str, int] = {}
    for run in one.runs:
        by_status[run["status"]] = by_status.get(run["status"], 0) + 1
    if not one.is_group:
        return STATUS[one.runs[0]["status"]].text
    return ", ".join(f"{number(runs)} {STATUS[status].text}" for status, runs in by_status.items())


def _middle(one: Subject, name: str, text: Callable[[float], str]) -> str | None:
    """A run's value, or the median of a group with its ends."""
    middle = one.middle(name)
    if middle is None:
        return None
    known = sorted(run[name] for run in one.runs if run[name] is not None)
    if len(known) < 2 or text(known[0]) == text(known[-1]):
        return text(middle)
    return f"{text(middle)} ({text(known[0])} to {text(known[-1])})"


def _each(one: Subject, text: Text) -> str | None:
    found = dict.fromkeys(words for run in one.runs if (words := text(run)) is not None)
    return ", ".join(found) or None


def _range(run: Row) -> str | None:
    low, high = run["step_time_p10_s"], run["step_time_p90_s"]
    return None if low is None or high is None else f"{seconds(low)} to {seconds(high)}"


def _card_share(run: Row) -> str | None:
    peak = run["mem_peak_reserved_bytes"] or run["mem_peak_allocated_bytes"]
    if not peak or not run["memory_bytes"]:
        return None
    return f"{percent(peak / run['memory_bytes'], 0)} of {memory(run['memory_bytes'])}"


def _shortened(name: str) -> Text:
    return lambda run: None if run[name] is None else numbers.shortened(str(run[name]).strip(), 160)


def stated(run: Row) -> dict[str, Any]:
    """Columns that only the table of its publication has."""
    return dict(json.loads(run["extra"])) if run.get("extra") else {}


def _stated(name: str, text: Callable[[float], str]) -> Text:
    def found(run: Row) -> str | None:
        value = stated(run).get(name)
        try:
            return None if value is None else text(float(value))
        except ValueError:
            return str(value)

    return found


def _source(run: Row) -> str | None:
    parts = [part for part in (run["source_title"], run["table_or_figure"]) if part]
    return ", ".join(parts) or None


def _warmup(run: Row) -> str | None:
    dropped = run["warmup_steps_dropped"]
    return f"{count(dropped, 'step')} left out" if dropped else None


_NUMBERS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("tokens_per_s_per_gpu", "Tokens/s/GPU", number),
    ("usd_per_m_tokens", "$ per million tokens", dollars),
    ("tokens_per_s", "Tokens/s", number),
    ("step_time_s", "Step time", seconds),
    ("mfu", "MFU", percent),
    ("mfu_logged", "MFU as printed", percent),
    ("hfu", "HFU", percent),
    ("model_tflops_per_gpu", "Model TFLOP/s/GPU", significant),
    ("mem_peak_allocated_bytes", "Peak allocated", memory),
    ("mem_peak_reserved_bytes", "Peak reserved", memory),
    ("last_loss", "Last loss", significant),
    ("steps_logged", "Steps logged", number),
    ("gpu_hours", "GPU-hours", significant),
)
_TEXTS: tuple[tuple[str, str, Text], ...] = (
    ("step_time_range", "Step time, 10th to 90th percentile", _range),
    ("card_share", "Of the card's memory", _card_share),
    ("mfu_basis", "MFU by", _shortened("mfu_basis")),
    ("warmup", "Warm-up", _warmup),
    ("started_at", "Started", lambda run: None if run["started_at"] is None else moment(run["started_at"])),
    ("status_evidence", "Why that outcome", _shortened("status_evidence")),
    ("quarantine_reason", "Kept out of rankings", _shortened("quarantine_reason")),
    ("comparability", "Comparable", _shortened("comparability")),
    ("source", "Published in", _source),
    ("published_on", "Published on", lambda run: published_on(run["source_url"])),
    ("gpu_hours_per_t_tokens", "GPU-hours per trillion tokens", _stated("gpu_hours_per_t_tokens", number)),
    ("goodput_pct", "Goodput", _stated("goodput_pct", lambda value: percent(value / 100))),
    ("cost_usd", "Cost as published", _stated("cost_usd", lambda value: f"${number(value)}")),
)
