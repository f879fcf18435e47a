"""The step curves of several runs on one pair of axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.view_models.compare import Subject
from sweepscope.dashboard.view_models.curves import MEASURES, Curve, Measure, curve, offered


@dataclass(frozen=True)
class Overlay:
    """One measure of several runs: curves with the letter of their column and its place, and the axis of all."""

    measure: Measure
    curves: tuple[tuple[str, int, Curve], ...]
    low: float
    high: float

    @property
    def letters(self) -> set[str]:
        """Columns with at least one curve."""
        return {letter for letter, _, _ in self.curves}


def measures(points: pl.DataFrame) -> list[Measure]:
    """Measures that at least one run logged in two steps; `points` are rows of `queries.compare.steps`."""
    found = {measure.key for part in points.partition_by("run_id") for measure in offered(part)}
    return [measure for key, measure in MEASURES.items() if key in found]


def overlay(columns: Sequence[Subject], points: pl.DataFrame, measure: Measure) -> Overlay:
    """The curves of one of `measures`, each clipped as on the page of its run."""
    by_run = {str(part["run_id"][0]): part for part in points.partition_by("run_id")}
    found = []
    for place, one in enumerate(columns):
        for run in one.runs:
            part = by_run.get(run["run_id"])
            if part is None or part[measure.column].count() < 2:
                continue
            drawn = curve(part, measure, warmup_steps=run["warmup_steps_dropped"] or 0, median=None)
            if drawn.points.height:
                found.append((one.letter, place, drawn))
    low = min((drawn.low for _, _, drawn in found), default=0.0)
    high = max((drawn.high for _, _, drawn in found), default=1.0)
    # Where one takes many times as long as another, the axis begins at nothing: a line must not lie on its edge.
    return Overlay(measure, tuple(found), 0.0 if 0 < low < high / 3 else low, high)
