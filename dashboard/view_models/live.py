"""Running jobs as the page shows them: progress, time left and silence, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.thresholds import LIVE_SILENCE_S, SILENCE_USUAL_PAUSES, STALE_AFTER, STALE_PAUSES

_COUNTS_NO_STEPS = ("batch", "ordinal")


@dataclass(frozen=True)
class Job:
    """A run without an ending, at one moment.

    Attributes:
        row: of `queries.live.live`.
        silent_s: since its newest file was written to; None where nothing tells.
        is_live: its log was written to so recently that it runs, as far as a log can tell.
        is_silent: it is live and has been silent for longer than its own steps explain.
        share: of the planned steps; None where the plan, or what is counted, is unknown.
        left_s: until the last planned step at its own pace; None while it is silent.
        last_line: of the log as it lies on disk, "" where it cannot be read.
    """

    row: Row
    silent_s: float | None
    is_live: bool
    is_silent: bool
    share: float | None
    left_s: float | None
    last_line: str = ""


def job(row: Row, now_s: float, *, mtime_s: float | None = None, last_line: str = "") -> Job:
    """A run at `now_s` (seconds since 1970); `mtime_s` and `last_line` are of its log as it lies on disk now."""
    written = [moment for moment in (row["mtime_s"], mtime_s) if moment]
    silent_s = max(0.0, now_s - max(written)) if written else None
    pace_s, pause_s = row["pace_s"], row["longest_pause_s"] or 0.0
    patience_s = max(STALE_AFTER.total_seconds(), STALE_PAUSES * pause_s)
    is_live = silent_s is not None and silent_s <= patience_s
    usual_s = row["usual_pause_s"]
    is_silent = is_live and bool(usual_s) and (silent_s or 0) > max(LIVE_SILENCE_S, SILENCE_USUAL_PAUSES * usual_s)
    planned, last = row["steps_planned"], row["last_step"]
    is_countable = bool(planned) and last is not None and row["step_basis"] not in _COUNTS_NO_STEPS
    share = min(last / planned, 1.0) if is_countable else None
    left_s = None
    if share is not None and pace_s and is_live and not is_silent:
        left_s = max(0.0, (planned - last) * pace_s - min(silent_s or 0.0, pace_s))
    return Job(row, silent_s, is_live, is_silent, share, left_s, last_line)


def since(seen: Mapping[str, object] | None, runs: int, failed: int) -> tuple[int, int] | None:
    """Runs and failed runs more than at the last visit; None at the first visit, and for a store that has fewer now.

    >>> since({"runs": 100, "failed": 10}, 112, 13), since(None, 112, 13), since({"runs": 200, "failed": 0}, 112, 13)
    ((12, 3), None, None)
    """
    if not seen or not isinstance(seen.get("runs"), int) or not isinstance(seen.get("failed"), int):
        return None
    more = runs - int(str(seen["runs"])), failed - int(str(seen["failed"]))
    return more if more[0] >= 0 and more[1] >= 0 else None
