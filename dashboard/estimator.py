"""Rows of the page on the estimator: which runs the constants were fitted on, and where a run's MFU goes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from dashboard.labels import NBSP, number
from pipeline.estimate.profile import Profile, load_profiles

SLOW = 1.5
"""Times slower than estimated from which the view `estimator_residuals` calls a run penalised."""

MIN_RUNS = 5
"""A pattern of fewer runs has no 10th and 90th percentile worth drawing."""

FITTED, OTHER_STUDY, UNFITTED = "fitted", "other study", "not fitted"


def times(value: float) -> str:
    """Measured over estimated, in two decimals near 1 where they matter.

    >>> times(1.054).replace(NBSP, " "), times(12.31).replace(NBSP, " ")
    ('1.05 ×', '12.3 ×')
    """
    return f"{number(value, 2 if value < 2 else 1)}{NBSP}×"


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
    known = pl.DataFrame(
        {"est_profile": list(studies), "study": list(studies.values())},
        schema={"est_profile": pl.String, "study": pl.String},
    )
    is_own = (pl.col("study") == pl.col("sweep")) & (pl.col("origin") == "published")
    fit = pl.when(pl.col("study").is_null()).then(pl.lit(UNFITTED)).when(is_own).then(pl.lit(FITTED))
    return (
        runs.join(known, on="est_profile", how="left", maintain_order="left")
        .with_columns(fit=fit.otherwise(pl.lit(OTHER_STUDY)))
        .drop("study")
    )


def profiles(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per profile that `runs` use: what it was fitted on, and its error on rows left out of the fit."""
    used = runs.group_by("est_profile").len("runs").sort("runs", "est_profile", descending=[True, False])
    known = load_profiles()
    rows = []
    for name, count in used.iter_rows():
        profile = known.get(name)
        about = profile.about if profile is not None else {}
        rows.append(
            {
                "est_profile": name, "runs": count,
                "fitted_on": about.get("fitted_on", "published constants, not fitted"),
                "constants_fitted": len(about.get("fitted", [])), "split": about.get("split"),
                "unseen_time_error": about.get("time_median"), "unseen_time_p10": about.get("time_p10"),
                "unseen_time_p90": about.get("time_p90"), "unseen_mem_error": about.get("memory_median"),
                "fitted_at": about.get("fitted_at"),
            }
        )  # fmt: skip
    schema = {
        "est_profile": pl.String, "runs": pl.Int64, "fitted_on": pl.String, "constants_fitted": pl.Int64,
        "split": pl.String, "unseen_time_error": pl.Float64, "unseen_time_p10": pl.Float64,
        "unseen_time_p90": pl.Float64, "unseen_mem_error": pl.Float64, "fitted_at": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


@dataclass(frozen=True)
class Loss:
    """A step of the waterfall: its share of the measured step time, and the level before it; 1 is the peak."""

    name: str
    share: float
    before: float


_PARTS = (
    ("elementwise", "Norms, activations, launches"),
    ("recompute", "Recomputation"),
    ("tp", "TP communication"),
    ("cp", "CP communication"),
    ("ep", "Expert exchange"),
    ("pp", "PP transfers"),
    ("bubble", "Pipeline bubble"),
    ("dp", "DP communication"),
    ("optimizer", "Optimizer, accumulation"),
    ("rest", "Fixed cost"),
)
_SELDOM = ("cp", "ep")  # drawn only where a run has them
KERNELS, UNEXPLAINED = "Kernels below peak", "Unexplained"


def measured_mfu(row: Mapping[str, Any]) -> float:
    """MFU of the measured step by the FLOPs that the estimate counts, so that the two differ by time alone."""
    return float(row["est_mfu"] / row["time_ratio"])


def waterfall(row: Mapping[str, Any]) -> list[Loss]:
    """From the peak down to the measured MFU, as shares of the measured step time.

    `row` is one of `queries.estimator.breakdown`. Kernels lose what matrix products and attention take beyond the time
    that their FLOPs need at peak. Unexplained is what was measured beyond the estimate: negative for a faster run.
    """
    measured = row["step_time_s"]
    at_peak = row["est_mfu"] * row["est_step_time_s"]
    kernels = row["est_time_linear_s"] + row["est_time_attention_s"] + row["est_time_head_s"] - at_peak
    times = [(KERNELS, kernels)]
    times += [
        (label, row[f"est_time_{part}_s"])
        for part, label in _PARTS
        if part not in _SELDOM or row[f"est_time_{part}_s"] > 0
    ]
    times.append((UNEXPLAINED, measured - row["est_step_time_s"]))
    losses, level = [], 1.0
    for name, seconds in times:
        losses.append(Loss(name, seconds / measured, level))
        level -= seconds / measured
    return losses


def examples(runs: pl.DataFrame, picked: str | None) -> dict[str, str]:
    """Runs to take apart, as run_id to what they stand for: the picked one, the best MFU, the middle of each pattern.

    `runs` are rows of `queries.estimator.runs`: the best MFU first.
    """
    if runs.is_empty():
        return {}
    found = {runs["run_id"][0]: "best MFU"}
    middles = (
        runs.sort("time_ratio", "run_id")
        .group_by("pattern", maintain_order=True)
        .agg(pl.col("run_id").get(pl.len() // 2), pl.len().alias("runs"), pl.col("time_ratio").median())
        .filter(pl.col("runs") >= MIN_RUNS)
        .sort("time_ratio", "pattern", descending=[True, False])
    )
    for row in middles.iter_rows(named=True):
        found.setdefault(row["run_id"], f"middle of {row['pattern']}")
    if picked is not None and picked not in found and picked in runs["run_id"]:
        found = {picked: "picked", **found}
    return found
