"""The sentences on running jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sweepscope.dashboard.format.numbers import count, number, part_of, seconds
from sweepscope.dashboard.format.numbers import moment as moment_text
from sweepscope.dashboard.text.run import title
from sweepscope.dashboard.view_models.live import Job

NONE = (
    "**No run is in progress.** A log without an ending counts as running while it grows; **sweepscope watch** ingests "
    "it as it does."
)
HOW_TO_READ = (
    "**How to read it.** Steps, plan and throughput are those of the newest store version; silence and the last line "
    "are of the log as it lies on disk now. The time left is the steps left at the run's own median pace. A log that "
    "was last written 15 minutes ago or longer, and 3 times its own longest pause, is not called running."
)
HOW_FRESH = "Steps are as new as the last ingest: **sweepscope serve PATH** reads logs on while this page is open."


def duration(value_s: float | None) -> str:
    """A length of time in at most two units.

    >>> duration(42), duration(260), duration(8000), duration(200_000), duration(None)
    ('42 s', '4 min', '2 h 13 min', '2 d 7 h', 'unknown')
    """
    if value_s is None:
        return "unknown"
    minutes, hours = int(value_s // 60), int(value_s // 3600)
    if value_s < 60:
        return f"{value_s:.0f} s"
    if hours < 1:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def answer(jobs: Sequence[Job]) -> str:
    """How many run, and what needs a look."""
    live = [job for job in jobs if job.is_live]
    silent = [job for job in live if job.is_silent]
    dead = len(jobs) - len(live)
    if not live:
        if not dead:
            return NONE
        verb = "was" if dead == 1 else "were"
        return f"**No run is in progress.** {count(dead, 'run')} {verb} running when read last, and silent since."
    parts = [f"**{count(len(live), 'run')} {'is' if len(live) == 1 else 'are'} running.**"]
    if silent:
        names = f"{count(len(silent), 'run')} {'has' if len(silent) == 1 else 'have'}"
        parts.append(f"{names} been silent for far longer than a step takes.")
    first = min((job for job in live if job.left_s is not None), key=lambda job: job.left_s or 0, default=None)
    if first is not None:
        parts.append(f"The next to end has ~{duration(first.left_s)} left.")
    return " ".join(parts)


def what(job: Job) -> str:
    """Model, hardware and layout of a run."""
    return " · ".join(part for part in (title(job.row), job.row["layout"]) if part)


def progress(job: Job) -> str:
    """How many steps of how many."""
    last, planned = job.row["last_step"], job.row["steps_planned"]
    if last is None:
        return "no step yet"
    if job.share is None:
        return f"step {number(last)}, plan not logged"
    return f"step {number(last)} of {number(planned)} · {part_of(job.share)}"


def left(job: Job) -> str:
    """The time left."""
    return "–" if job.left_s is None else f"~{duration(job.left_s)}"


def silence(job: Job) -> str:
    """How long ago the log was written to, beside its own usual step."""
    if job.silent_s is None:
        return "unknown"
    usual = job.row["usual_pause_s"]
    often = f"; a line every {seconds(usual)}" if usual else ""
    if job.is_silent and usual:
        return f"silent for {duration(job.silent_s)}, {number(job.silent_s / usual)} × its usual pause"
    return f"{duration(job.silent_s)} ago{often}"


def speed(job: Job) -> str:
    """Throughput per accelerator."""
    value = job.row["tokens_per_s_per_gpu"]
    return "not logged" if value is None else number(value)


def at(now_s: float) -> str:
    """When the page was drawn last."""
    return f"as of {datetime.fromtimestamp(now_s, UTC):%H:%M:%S} UTC, refreshed every few seconds"


def ended(job: Job) -> tuple[str, str]:
    """A run that was running when it was read and has been silent since: when it was written to last, what to do."""
    mtime = job.row["mtime_s"]
    when = moment_text(datetime.fromtimestamp(mtime, UTC)) if mtime else "unknown"
    return f"last written {when} UTC, {duration(job.silent_s)} ago", "ingest its folder again to learn how it ended"


def since(more: tuple[int, int], at: str) -> list[tuple[str, str]]:
    """What came since the last visit, as (text, value) of a list.

    >>> since((12, 3), "20 Nov 2026 22:41")
    [('12 new runs', 'since 20 Nov 2026 22:41'), ('3 of them failed', 'failed')]
    """
    runs, failed = more
    if not runs:
        return []
    lines = [(count(runs, "new run"), f"since {at}")]
    if failed:
        lines.append((f"{number(failed)} of them failed", "failed"))
    return lines
