"""What the watcher reads, as environment variables: Dagster's processes get nothing else from `sweepscope watch`."""

from __future__ import annotations

import os

PATHS_VARIABLE = "SWEEPSCOPE_LANDING"
"""Paths and URLs to watch, separated like PATH. `sweepscope watch` sets it."""

OWN_ONLY_VARIABLE = "SWEEPSCOPE_OWN_ONLY"
"""Not empty: runs leave the bundled results out. `watch --no-published` sets it."""

EVERY_VARIABLE = "SWEEPSCOPE_EVERY_S"
"""Seconds between two looks of the sensor. `watch --every` sets it."""

EVERY_S = 30

LEAST_EVERY_S = 5
"""Dagster's daemon asks its sensors no more often."""

NOTHING_WATCHED = f"No paths to watch. Start with `sweepscope watch PATH`, or set {PATHS_VARIABLE}."


def watched_paths() -> list[str]:
    """Paths to watch. URLs hold colons, so a line break separates as well as os.pathsep between local paths."""
    text = os.environ.get(PATHS_VARIABLE, "")
    lines = [line for line in text.split("\n") if line]
    return [part for line in lines for part in ([line] if "://" in line else line.split(os.pathsep)) if part]


def with_published() -> bool:
    """Whether runs of the watcher load the bundled results."""
    return not os.environ.get(OWN_ONLY_VARIABLE)


def every_s() -> int:
    """Seconds between two looks of the sensor: at least LEAST_EVERY_S, and EVERY_S where nothing else is set."""
    text = os.environ.get(EVERY_VARIABLE, "")
    return max(LEAST_EVERY_S, int(text)) if text.isdecimal() else EVERY_S
