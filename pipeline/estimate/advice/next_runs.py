"""What to run next in a cell: the layouts whose test promises most throughput per GPU-hour, given what was measured.

A candidate is a layout that fits, is not measured yet, and does not need at least as much memory, part by part, as a
layout that ran out of it. Its step time is believed to be what is expected of it (physics times the learned
penalty), moved by what similar layouts of the cell took beyond theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.advice.acquisition import Belief, believe, improvement
from sweepscope.pipeline.estimate.advice.cell import is_sound, startup_of
from sweepscope.pipeline.estimate.advice.exclusions import exclude
from sweepscope.pipeline.estimate.advice.near_equal import ALIKE, apart, features
from sweepscope.pipeline.estimate.learned.track_record import conformal_interval
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile
from sweepscope.pipeline.estimate.rows.asking import OK
from sweepscope.pipeline.estimate.rows.estimate_rows import PREDICTED, predict
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import MARGIN, Found, search
from sweepscope.pipeline.reference.layout_text import full_layout_text, layout_key

POOL = 400
"""Layouts that are looked at, the best of a search first."""
TEST_STEPS = 20
"""Steps of a test run: the playbook's and picotron's benchmark scripts run as many, a few of them warm-up."""
BOUND = 1.2816
"""The 90th percentile of a standard normal variable: an 80 % interval lies within this many standard deviations."""
FEW = 3
"""Runs of a cell from which their median residual moves what is expected of the others, where no spread is known."""
EARLY = 0.9
"""No candidate is believed to take less than this share of what physics allows; 2 % of the playbook's runs did."""


@dataclass(frozen=True)
class NextRuns:
    """`candidates`: most gain per GPU-hour first; the columns of a search and those of PROPOSED.

    `best`: the fastest measured run (run_id, layout, step_time_s) or None. `excluded`: reason to layouts of the pool.
    `basis`: source of the uncertainty, as text. `startup_s`: seconds of a test before its first step, or None.
    """

    candidates: pl.DataFrame
    best: dict[str, Any] | None
    measured: int
    excluded: dict[str, int]
    basis: str
    startup_s: float | None


PROPOSED: Final = pl.Schema(
    {
        "layout": pl.String,
        "believed_step_time_s": pl.Float64,
        "believed_lo_s": pl.Float64,
        "believed_hi_s": pl.Float64,
        "gain": pl.Float64,
        "chance": pl.Float64,
        "test_gpu_hours": pl.Float64,
        "gain_per_gpu_hour": pl.Float64,
        "tried": pl.String,
        "why": pl.String,
    }
)
"""`gain`: expected share of throughput above the measured best; NULL when nothing was measured. `chance` that there is
any. `believed_lo_s` to `believed_hi_s` holds 80 %; NULL without residuals."""


def _centre(frame: pl.DataFrame) -> Array:
    return frame.select(pl.coalesce("expected_step_time_s", "est_step_time_s")).to_series().to_numpy()


def _spread(frame: pl.DataFrame, otherwise: float) -> Array:
    """How much faster than expected comparable runs were: only that side of the interval can bring a gain."""
    low = frame["est_step_time_lo_s"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    spread = np.maximum(np.log(_centre(frame) / low), 0.02) / BOUND
    return np.where(np.isfinite(spread), spread, otherwise)


def next_runs(
    request: Request,
    runs: pl.DataFrame,
    *,
    top: int = 10,
    margin: float = MARGIN,
    test_steps: int = TEST_STEPS,
    startup_s: float | None = None,
    found: Found | None = None,
    keeps_alike: bool = False,
) -> NextRuns:
    """Candidates for the cell of `request`, given `runs`: rows of the table `runs` of that cell, of any outcome.

    `startup_s` is taken from the runs when it is None. `found` is the search over `request` where the caller has it, of
    as many layouts as are to be looked at. Of near-equal layouts the most promising alone is proposed, for its test
    tells about the others; `keeps_alike` lists them all. Rows that duplicate others or are quarantined count as tried,
    never as best. An empty `candidates` is possible: everything that fits was measured, or nothing fits.
    """
    pool = (found or search(request, top=POOL, margin=margin)).layouts
    rows = read_rows(runs)
    outcomes = list(zip(map(layout_key, rows.iter_rows(named=True)), runs["status"], strict=True))
    sound = runs.filter(is_sound())
    done = _estimated(request, runs, rows, is_sound())
    ran_out = _estimated(request, runs, rows, pl.col("status") == "oom")
    excluded, kept = exclude(pool, outcomes, ran_out)
    left = pool.filter(pl.Series(kept, dtype=pl.Boolean))
    best = None
    if sound.height:
        fastest = sound.sort("step_time_s", "run_id").row(0, named=True)
        best = {"run_id": fastest["run_id"], "layout": full_layout_text(fastest), "step_time_s": fastest["step_time_s"]}
    otherwise, basis = _spread_of_cell(done)
    if left.height and left["est_interval_basis"].is_not_null().any():
        basis = str(left["est_interval_basis"].drop_nulls()[0])
    prior = Belief(_centre(left), _spread(left, otherwise))
    seen = Belief(_centre(done), _spread(done, otherwise))
    belief = prior
    if done.height and np.isfinite(prior.spread).all() and np.isfinite(seen.spread).all():
        belief = believe(prior, features(left), seen, features(done), done["step_time_s"].to_numpy())
    elif done.height >= FEW:
        belief = Belief(prior.centre_s * float(np.median(done["step_time_s"].to_numpy() / seen.centre_s)), prior.spread)
    startup = startup_s if startup_s is not None else startup_of(runs)
    table = _proposed(left, belief, best, _hours(request, belief, test_steps, startup))
    tried = {key: status for key, status in dict(outcomes).items() if status != "completed"}
    before = [tried.get(layout_key(row)) for row in left.iter_rows(named=True)]
    table = table.with_columns(tried=pl.Series(before, dtype=pl.String))
    order = "gain_per_gpu_hour" if best is not None else "believed_step_time_s"
    ranked = table.sort(order, "layout", descending=[best is not None, False])
    if not keeps_alike:
        ranked, alike = apart(ranked, top)
        excluded = {**excluded, **({ALIKE: alike} if alike else {})}
    candidates = ranked.head(top).with_columns(
        why=pl.Series([_why(row, best, done, basis) for row in ranked.iter_rows(named=True)], dtype=pl.String)
    )
    return NextRuns(candidates, best, sound.height, excluded, basis, startup)


def _estimated(request: Request, runs: pl.DataFrame, rows: pl.DataFrame, which: pl.Expr) -> pl.DataFrame:
    """`which` of the runs with their estimate by the request's own constants; those that cannot be estimated are left
    out. `rows` are the runs as `read_rows` reads them.
    """

    def always(_generation: str, _framework: str | None) -> Profile:
        return request.asked.profile

    chosen = runs.select(which.fill_null(False)).to_series()
    kept = runs.filter(chosen).drop(PREDICTED, strict=False)
    estimated = pl.concat([kept, predict(rows.filter(chosen), always)], how="horizontal")
    return estimated.filter(pl.col("est_status") == OK)


def _spread_of_cell(done: pl.DataFrame) -> tuple[float, str]:
    """(spread, basis) from the cell's runs, where the framework has no record; NaN when they are too few."""
    ratios = np.log(done["step_time_s"].to_numpy() / _centre(done)) if done.height else np.zeros(0)
    found = conformal_interval(ratios, f"{len(ratios)} runs of this cell")
    if found is None:
        return float("nan"), f"spread unknown: {_too_few(len(ratios))}"
    return max(float(np.log(found.middle / found.low)), 0.02) / BOUND, found.basis


def _too_few(runs: int) -> str:
    return "no comparable run" if not runs else f"only {runs} comparable run{'s' if runs > 1 else ''}"


def _hours(request: Request, belief: Belief, steps: int, startup_s: float | None) -> Array:
    hours: Array = request.num_gpus * ((startup_s or 0.0) + steps * belief.centre_s) / 3600.0
    return hours


def _proposed(left: pl.DataFrame, belief: Belief, best: dict[str, Any] | None, hours: Array) -> pl.DataFrame:
    known = np.isfinite(belief.spread)
    gain, chance = np.full(left.height, np.nan), np.full(left.height, np.nan)
    if best is not None and left.height:
        least = EARLY * left["est_step_time_s"].to_numpy()
        certain = np.maximum(best["step_time_s"] / np.maximum(belief.centre_s, least) - 1.0, 0.0)
        sure = Belief(belief.centre_s, np.where(known, belief.spread, 1.0))
        gains, chances = improvement(sure, best["step_time_s"], least)
        gain, chance = np.where(known, gains, certain), np.where(known, chances, np.nan)
    width = np.exp(BOUND * belief.spread)
    columns = {
        "believed_step_time_s": belief.centre_s,
        "believed_lo_s": belief.centre_s / width,
        "believed_hi_s": belief.centre_s * width,
        "gain": gain,
        "chance": chance,
        "test_gpu_hours": hours,
        "gain_per_gpu_hour": gain / hours,
    }
    names = [full_layout_text(row) for row in left.iter_rows(named=True)]
    return left.with_columns(
        pl.Series("layout", names, dtype=pl.String),
        *(pl.Series(name, values, pl.Float64).fill_nan(None) for name, values in columns.items()),
    )


def _why(row: dict[str, Any], best: dict[str, Any] | None, done: pl.DataFrame, basis: str) -> str:
    """One sentence with the figures for the layout."""
    physics = f"estimated at {row['est_step_time_s']:.3g} s per step"
    if row["est_penalty"] is not None:
        physics += f", this framework's runs of its kind take {row['est_penalty']:.2f} times that"
    moved = row["believed_step_time_s"] / (row["expected_step_time_s"] or row["est_step_time_s"]) - 1.0
    near = ""
    if done.height and abs(moved) >= 0.005:
        who = (
            "measured layouts like it were"
            if row["chance"] is not None
            else f"the {done.height} runs measured here were"
        )
        near = f"; {who} {abs(moved):.1%} {'slower' if moved > 0 else 'faster'} than expected"
    if best is None:
        gain = "nothing was measured in this cell yet"
    elif row["chance"] is None:
        gain = f"{row['gain']:+.1%} over {best['layout']} ({basis})"
    else:
        beaten = f"{best['layout']} ({best['step_time_s']:.3g} s)"
        gain = f"a chance of {row['chance']:.0%} to beat {beaten}, {row['gain']:+.1%} expected"
    before = f"; tried before: {row['tried']}" if row["tried"] else ""
    return f"{physics[0].upper()}{physics[1:]}{near}; {gain}{before}."
