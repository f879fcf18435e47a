"""Rows of the page on the estimator: which runs the constants were fitted on, and where a run's MFU goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import polars as pl

from sweepscope.dashboard.format.numbers import NBSP, number
from sweepscope.dashboard.queries.estimator import RATIO_COLUMNS
from sweepscope.dashboard.queries.query import Row
from sweepscope.pipeline.estimate.learned.record_file import find_record
from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles
from sweepscope.pipeline.estimate.rows.waterfall import waterfall
from sweepscope.schemas.thresholds import PATTERN_RUNS, PENALISED_RATIO

FITTED, OTHER_STUDY, UNFITTED = "fitted", "other study", "not fitted"


def times(value: float) -> str:
    """Measured over estimated, in two decimals near 1 where they matter.

    >>> times(1.054).replace(NBSP, " "), times(12.31).replace(NBSP, " ")
    ('1.05 ×', '12.3 ×')
    """
    return f"{number(value, 2 if value < 2 else 1)}{NBSP}×"


def offered_against(runs: pl.DataFrame) -> list[str]:
    """Kinds of RATIO_COLUMNS that are known for some of `runs` and differ from the estimate."""

    def differs(name: str) -> bool:
        return name in runs.columns and bool((runs[name] != runs["time_ratio"]).any())

    return [kind for kind, name in RATIO_COLUMNS.items() if kind == "estimate" or differs(name)]


def compared_with(runs: pl.DataFrame, kind: str) -> pl.DataFrame:
    """`runs` compared with another kind of estimate; runs without one are left out."""
    ratio = pl.col(RATIO_COLUMNS[kind])
    return runs.filter(ratio.is_not_null()).with_columns(
        time_ratio=ratio,
        est_mfu=pl.col("est_mfu") * ratio / pl.col("time_ratio"),
        est_step_time_s=pl.col("step_time_s") / ratio,
        is_penalised=ratio > PENALISED_RATIO,
    )


def study_of(profile: Profile | None) -> str | None:
    """The study a profile was fitted on, None for constants from publications.

    `fitted_on` reads "<study>, <n> rows".
    """
    if profile is None or profile.about.get("kind") != "fitted":
        return None
    return str(profile.about["fitted_on"]).rpartition(", ")[0] or None


def with_fit(runs: pl.DataFrame) -> pl.DataFrame:
    """`runs` with `fit`: whether their constants were fitted on their own study, on another one, or not at all.

    Needs `est_profile`, `sweep` and `origin`. Profiles are fitted on published studies only.
    """
    studies = {name: study_of(profile) for name, profile in load_profiles().items()}
    schema = {"est_profile": pl.String, "study": pl.String}
    known = pl.DataFrame({"est_profile": list(studies), "study": list(studies.values())}, schema=schema)
    is_own = (pl.col("study") == pl.col("sweep")) & (pl.col("origin") == "published")
    fit = pl.when(pl.col("study").is_null()).then(pl.lit(UNFITTED)).when(is_own).then(pl.lit(FITTED))
    return (
        runs.join(known, on="est_profile", how="left", maintain_order="left")
        .with_columns(fit=fit.otherwise(pl.lit(OTHER_STUDY)))
        .drop("study")
    )


_ACCURACY = pl.Schema(
    {
        **dict.fromkeys(("est_profile", "predicted", "fitted_on", "split", "fitted_at"), pl.String),
        **dict.fromkeys(("runs", "rows", "age_days"), pl.Int64),
        **dict.fromkeys(("unseen_median_error", "unseen_mean_error", "interval_coverage"), pl.Float64),
    }
)
_PREDICTED = {"time": "step time, by the hardware", "penalty": "step time, with the penalty", "memory": "peak memory"}


def accuracy(runs: pl.DataFrame, known: Mapping[str, Profile], today: date) -> pl.DataFrame:
    """How far off each profile was on rows that its fit had not seen, by what it predicts: `rows` of them, the split.

    One row per profile and prediction; those that `runs` use (column `est_profile`) come first, most runs first. A
    profile of publications has one row, without figures. `interval_coverage` is how many of the unseen rows lay in
    their 80 % interval. A penalty that did not help is not used and not listed.
    """
    used = dict(runs.group_by("est_profile").len().iter_rows())
    rows: list[dict[str, Any]] = []
    for name in sorted({*known, *used}, key=lambda name: (-used.get(name, 0), name)):
        profile = known.get(name)
        record = find_record(profile) if profile is not None else None
        if record is None or profile is None:
            if used.get(name):
                rows.append({"est_profile": name, "runs": used[name], "predicted": "constants of publications"})
            continue
        fitted_at = str(record.about.get("learned_at", profile.about.get("fitted_at", "")))
        age = (today - date.fromisoformat(fitted_at)).days if fitted_at else None
        for part, predicted in _PREDICTED.items():
            errors = record.about.get(part)
            if errors is None or (part == "penalty" and record.penalty is None):
                continue
            rows.append(
                {
                    "est_profile": name,
                    "runs": used.get(name, 0),
                    "predicted": predicted,
                    "fitted_on": str(record.about.get("learned_on", "")).replace("_", " "),
                    "rows": errors["rows"],
                    "unseen_median_error": errors["median_ape"],
                    "unseen_mean_error": errors["mape"],
                    "interval_coverage": errors.get("interval_coverage"),
                    "split": errors.get("split", record.about.get("physics_split")),
                    "fitted_at": fitted_at,
                    "age_days": age,
                }
            )
    return pl.DataFrame(rows, schema=_ACCURACY)


def unseen_errors(accuracy: pl.DataFrame) -> list[float]:
    """Median error of step times per profile in use on rows left out: with the penalty where one was learned."""
    order = [_PREDICTED["penalty"], _PREDICTED["time"]]
    used = accuracy.filter((pl.col("runs") > 0) & pl.col("predicted").is_in(order))
    best = used.sort(pl.col("predicted").replace_strict(order, [0, 1])).unique("est_profile", keep="first")
    return sorted(best["unseen_median_error"].to_list())


class Hover(NamedTuple):
    """Hover of a point in a parity chart. Of thousands of points, each holds only what differs."""

    name: str
    layout: str
    step_s: str
    est_step_s: str
    times: str
    mfu_percent: str
    est_mfu_percent: str
    memory: str


@dataclass(frozen=True)
class Loss:
    """A step of the waterfall: its share of the measured step time, and the level before it; 1 is the peak."""

    name: str
    share: float
    before: float


UNEXPLAINED = "Unexplained"
RECOUNTED = "MFU counted otherwise"
_SEEN = 5e-4  # share from which a bar's figure is not 0.0
_SELDOM = ("cp", "ep", "stall")  # drawn only where a run has them


def at_peak(row: Row) -> float:
    """The share of the measured step that the FLOPs of the estimate take at peak; `row` is one of `breakdown`."""
    return float(row["est_mfu"] / row["time_ratio"])


def is_possible() -> pl.Expr:
    """Runs of at most the peak. Beyond it, model, step time or accelerators in the log cannot all be right."""
    return (pl.col("mfu") <= 1.0).fill_null(True)


MOST_POINTS = 3_000
"""Points of a scatter from which on those that would hide one another are drawn once."""
_PLACES = 128
"""Places along an axis that a reader can distinguish: three pixels each, a point's radius."""


def thinned(runs: pl.DataFrame, axes: tuple[str, str], picked: str | None = None) -> pl.DataFrame:
    """`runs` to draw, in their order: of more than MOST_POINTS the first of each place and mark, and `picked`.

    `axes` are columns of numbers from 0 on; a mark is by `is_penalised` and `fit`.
    """
    if runs.height <= MOST_POINTS:
        return runs
    places = [(pl.col(name) / pl.col(name).max() * _PLACES).floor() for name in axes]
    is_first = pl.struct("is_penalised", "fit", *places).is_first_distinct()
    return runs.filter(is_first | (pl.col("run_id") == pl.lit(picked, pl.String)).fill_null(value=False))


def losses(row: Row) -> list[Loss]:
    """Losses from the peak down to the run's MFU, as shares of the measured step time.

    `row` is one of `queries.estimator.breakdown`. Unexplained is what was measured beyond the estimate: negative for a
    faster run. Where the MFU rests on other FLOPs or another throughput than estimate and step time, RECOUNTED is by
    how much. A run without an MFU ends at `at_peak`.
    """
    needed = ("est_mfu", "est_step_time_s", "step_time_s")
    times_of_row = {name: value for name, value in row.items() if name in needed or name.startswith("est_time_")}
    found = [
        Loss(loss["label"], loss["share"], loss["before"])
        for loss in waterfall(pl.DataFrame([times_of_row])).iter_rows(named=True)
        if loss["term"] not in _SELDOM or loss["share"] > 0
    ]
    left = at_peak(row)
    if row["mfu"] is not None and abs(left - row["mfu"]) >= _SEEN:
        found.append(Loss(RECOUNTED, left - row["mfu"], left))
    return found


def examples(runs: pl.DataFrame, picked: str | None) -> dict[str, str]:
    """Runs to take apart, as run_id to label: the picked one, the best MFU, the middle of each pattern.

    `runs` are rows of `queries.estimator.runs`: the best MFU first, runs without one after it, the fastest against its
    estimate first. The best is one that can be: see `is_possible`.
    """
    if runs.is_empty():
        return {}
    possible = runs.filter(is_possible())
    best = (runs if possible.is_empty() else possible).row(0, named=True)
    found = {best["run_id"]: "closest to its estimate" if best["mfu"] is None else "best MFU"}
    middles = (
        runs.sort("time_ratio", "run_id")
        .group_by("pattern", maintain_order=True)
        .agg(pl.col("run_id").get(pl.len() // 2), pl.len().alias("runs"), pl.col("time_ratio").median())
        .filter(pl.col("runs") >= PATTERN_RUNS)
        .sort("time_ratio", "pattern", descending=[True, False])
    )
    for row in middles.iter_rows(named=True):
        found.setdefault(row["run_id"], f"middle of {row['pattern']}")
    if picked is not None and picked not in found and picked in runs["run_id"]:
        found = {picked: "picked", **found}
    return found
