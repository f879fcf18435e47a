"""Lines on how the ranking of a cell came about: who led when, and what new versions changed."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.implementation import differing, label
from sweepscope.dashboard.format.numbers import MINUS, count, moment, number, part_of, percent
from sweepscope.dashboard.queries.query import Row

_VERSIONS = ("framework_version", "torch_version", "nccl_version")


def leads_title(leads: Sequence[Row]) -> str:
    """Qualifier of the list: how often the lead changed hands."""
    return f"the lead changed {count(len(leads) - 1, 'time')}"


def lead_line(row: Row, leads: Sequence[Row]) -> tuple[str, str]:
    """One leader: its layout and what ran it, and since when and by how much it led."""
    ran_by = label(row, differing(leads))
    what = " · ".join(part for part in (row["layout"] or "layout unknown", ran_by) if part)
    speed = f"{number(row['tokens_per_s_per_gpu'])} tokens/s/GPU"
    if row["margin"] is None:
        return what, f"{speed}, first on {moment(row['led_from'])}"
    tie = ", within the noise" if row["is_tie"] else ""
    return what, f"{speed}, {part_of(row['margin'], 1)} ahead{tie}, from {moment(row['led_from'])}"


def changes_title(changes: Sequence[Row]) -> str:
    """Qualifier of the list: how many layouts became slower, faster or neither."""
    verdicts = [row["change_verdict"] for row in changes]
    words = {"slower": "slower", "faster": "faster", "noise": "within the noise"}
    return ", ".join(f"{number(verdicts.count(name))} {word}" for name, word in words.items() if name in verdicts)


def change_line(row: Row) -> tuple[str, str]:
    """One layout in two versions: which, and how its speed changed."""
    before = {name: row[f"{name}_before"] for name in _VERSIONS}
    named = [name for name in differing([row, before]) if name in _VERSIONS]
    what = f"{row['layout']}: {label(before, named)} → {label(row, named)}"
    sign = MINUS if row["change"] < 0 else "+"
    verdict = {"slower": "regression", "faster": "faster", "noise": "within the noise"}[row["change_verdict"]]
    runs = f"{number(row['repeats_before'])} and {count(row['repeats'], 'run')}"
    return what, f"{sign}{percent(abs(row['change']))}, {verdict} (noise {percent(row['noise'])}, {runs})"
