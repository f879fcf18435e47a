"""Sentences of the lists on failures: stretched runs, reasons, and what to submit again."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format.numbers import count, number
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.failures import hours_figure

_WORDING_CHARS = 110
_STRETCH = {
    "slow_steps": "its steps are slow",
    "outside_of_steps": "time outside of its steps",
    "unknown": "its steps were not logged",
}


def stretched_line(row: Row) -> tuple[str, str]:
    """A stretched run: what it is, and by how much."""
    what = " · ".join(str(part) for part in (row["model"], row["layout"]) if part)
    return what, stretch(row)


def stretch(row: Row) -> str:
    """By how much a run was stretched, and where the time went."""
    much = f"{duration(row['duration_s'])} instead of {duration(row['usual_duration_s'])}"
    return f"{much}; {_STRETCH[row['stretch_cause']]}"


def duration(seconds: float) -> str:
    """A duration in hours, minutes or seconds.

    >>> duration(7200.0), duration(630.0), duration(40.0)
    ('2.0 h', '10.5 min', '40 s')
    """
    if seconds >= 3600:
        return f"{number(seconds / 3600, 1)} h"
    return f"{number(seconds / 60, 1)} min" if seconds >= 60 else f"{number(seconds)} s"


def idle_line(row: Row) -> tuple[str, str]:
    """A run that held GPUs without training, or whose processes would not end: what it is, and how much of what."""
    what = " · ".join(str(part) for part in (row["model"], row["layout"]) if part) or str(row["source_path"])
    parts = []
    if row["gpu_hours_held"]:
        parts.append(f"{hours_figure(row['gpu_hours_held'])} GPU-hours held after the end")
    elif row["gpu_hours_idle"]:
        parts.append(f"{hours_figure(row['gpu_hours_idle'])} GPU-hours beyond the log")
    if row["lingering"]:
        parts.append("processes outlived their signals")
    if row["is_gpu_busy"]:
        parts.append("its GPUs were in use before it began")
    return what, "; ".join(parts)


def idle_title(costs: pl.DataFrame) -> str:
    """Qualifier of that list: GPU-hours idle, in start-up and in the queue, as far as logs and scheduler tell."""
    names = {"gpu_hours_idle": "idle", "gpu_hours_startup": "in start-up", "gpu_hours_queued": "in the queue"}
    sums = {word: float(costs[name].sum()) for name, word in names.items()}
    parts = [f"{hours_figure(hours)} {word}" for word, hours in sums.items() if hours]
    return f"GPU-hours: {', '.join(parts)}" if parts else ""


def retry_title(configurations: int) -> str:
    """Qualifier of the retry list."""
    return f"{count(configurations, 'configuration')} without a result for infrastructure reasons"


NOT_LOGGED = "not logged"


def retry_unknown(bare: Sequence[Row]) -> str:
    """What to do with rows of the retry list that name neither model nor layout; empty where there are none."""
    if not bare:
        return ""
    names = "names" if len(bare) == 1 else "name"
    frameworks = sorted({row["framework"] for row in bare if row["framework"]})
    known = f" Known is the framework: {', '.join(frameworks)}." if frameworks else ""
    return (
        f"**{count(len(bare), 'row')} at the end {names} neither model nor layout,** nor does what was ingested beside "
        f"the log.{known} Directory and evidence line identify the run. Where the trainer wrote a configuration "
        "file, put it beside the log and ingest again."
    )


NO_RETRY = (
    "No configuration is without a result for infrastructure reasons alone. Those that crashed or did not fit in "
    "memory are left out: another try would end the same way."
)


def cut_short_title(configurations: int) -> str:
    """Qualifier of the list of configurations that the time limit cut short."""
    return f"{count(configurations, 'configuration')} ended by the time limit"


def cut_short_line(row: Row) -> tuple[str, str]:
    """A configuration that hit the time limit: what it is, how far it came, and what it would have needed."""
    what = " · ".join(str(part) for part in (row["model"], row["layout"]) if part) or str(row["source_path"])
    if row["last_step"] is None:
        return what, "no step before the time limit"
    of = f" of {number(row['steps_planned'])}" if row["steps_planned"] else ""
    took = f" in {duration(row['duration_s'])}" if row["duration_s"] else ""
    needs = f"; all of them need about {duration(row['needed_s'])}" if row["needed_s"] else ""
    return what, f"step {number(row['last_step'])}{of}{took}{needs}"


def wording(text: str | None) -> str:
    """A deciding line with its digits taken out, cut to what fits in a list.

    >>> wording(None), wording("RuntimeError: # is not #")
    ('no reason logged', 'RuntimeError: # is not #')
    """
    text = re.sub(r"\*{2,}", "", text or "").strip()  # two stars would read as bold
    if not text:
        return "no reason logged"
    return text if len(text) <= _WORDING_CHARS else f"{text[: _WORDING_CHARS - 1].rstrip()}…"
