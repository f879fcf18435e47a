"""Sentences of the page on the estimator, each computed from the rows on screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweepscope.dashboard.format.numbers import (
    NBSP,
    capital,
    count,
    number,
    percent,
)
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.estimator import (
    FITTED,
    OTHER_STUDY,
    UNFITTED,
    times,
)
from sweepscope.schemas.thresholds import PATTERN_RUNS, PENALISED_RATIO

NOTHING = "**No run is in this store yet.** Run **sweepscope ingest PATH** on a sweep."
BEFORE_ESTIMATES = (
    "**This store was published before runs had estimates.** The next ingest publishes it anew with them: "
    "**sweepscope ingest PATH**."
)
NOT_ESTIMATED = "**None of these runs can be compared with an estimate.** The reasons and remedies are listed below."
ACCURACY = "Accuracy by framework, accelerator and size (ratios are measured over estimated)"
UNSEEN = "Constants, and their errors on rows left out of the fit (each fit was repeated without one group of rows)"
HOW_TO_READ = (
    "**How to read it.** An estimate is what the hardware allows: matrix products, attention, exchange, bubble and "
    "memory traffic from first principles, with the constants listed above. Error is estimated against measured step "
    f"time. A run more than {PENALISED_RATIO:g}{NBSP}× slower than estimated is put down to its implementation, and "
    "drawn hollow.",
    "**What it hides.** Runs within that limit are chosen by their error, so their median error is no accuracy. "
    "Constants were fitted on studies that are drawn here as well, and where most runs stay behind their hardware only "
    "on those near it; the errors on rows left out of a fit are the ones to trust. MFU is the run's own, "
    "as on every page; the estimated MFU counts the same FLOPs.",
)
_FAR_OFF = 0.15  # median error from which own constants are worth a command
_FEW = 8  # runs that a fit needs


def calibration(totals: Row, fitted: Mapping[str, float]) -> str:
    """What constants of one's own would do, or how good they are; empty where there is nothing to gain.

    `fitted` are the median errors on unseen runs of the constants fitted on this home, by profile.
    """
    if fitted:
        errors = ", ".join(f"{name} {percent(error, 0)}" for name, error in sorted(fitted.items()))
        return (
            "These estimates use the bundled constants. Explorer, **plan**, **search** and **next** use those fitted "
            f"to your runs; median error on runs left out of the fit: {errors}."
        )
    if totals["runs"] < _FEW or (totals["time_error"] or 0.0) < _FAR_OFF:
        return ""
    return (
        "**sweepscope calibrate** fits the constants to these runs, and keeps them only where they predict left-out "
        "runs better. Explorer, **plan**, **search** and **next** use them from then on."
    )


ESTIMATE_KINDS = {
    "estimate": "by first principles",
    "hardware": "of the hardware alone",
    "expected": "with the learned penalty",
}
"""Kinds of estimate as the selector offers them."""
_ASIDE = {
    "estimate": "",
    "hardware": "The framework's launch stalls, which its profile has learned, are left out of these estimates.",
    "expected": "The penalty was learned on runs that are drawn here, so this is no test of it: its error on cells "
    "left out is listed with the constants below.",
}
_ADVICE = {
    "shape unknown": "Write the model's sizes into the run's arguments, or name a model of the registry.",
    "layout incomplete": "Log the parallel degrees and the micro-batch.",
    "sequence length not stated": "Log the sequence length.",
    "sharding of optimizer and parameters (ZeRO stage or FSDP) not stated": "Log the ZeRO stage or FSDP's strategy.",
    "accelerator not stated": "Name the accelerator when ingesting, or in the log.",
}


def answer(totals: Row, patterns: Sequence[Row]) -> str:
    """How good the estimates are, how many runs stay behind them, and with what."""
    runs, slow = totals["runs"], totals["penalised"]
    if not runs:
        return NOT_ESTIMATED
    first = f"**Median error of estimated step time: {percent(totals['time_error'], 0)} over {count(runs, 'run')}**"
    limit = f"{PENALISED_RATIO:g}{NBSP}×"
    if not slow:
        return f"{first}. {'It is not' if runs == 1 else 'None is'} more than {limit} slower than estimated."
    near = ""
    if runs > slow:
        healthy = percent(totals["healthy_time_error"], 0)
        near = f", {healthy} over the {number(runs - slow)} within {limit} of the estimate"
    are = "is slower than its" if slow == 1 else "are slower than their"
    return (
        f"{first}{near}. **{number(slow)} ({percent(slow / runs, 0)}) {are} hardware allows, "
        f"{times(totals['penalised_ratio'])}{'' if slow == 1 else ' at the median'}**{_blame(patterns, slow)}."
    )


def _blame(patterns: Sequence[Row], slow: int) -> str:
    """How most of the penalised runs lie on the nodes, or else the slowest pattern; `patterns` come slowest first."""
    penalised: dict[str, int] = {}  # by placement, which is the first part of a pattern
    for row in patterns:
        placement = row["pattern"].partition(" · ")[0]
        penalised[placement] = penalised.get(placement, 0) + row["penalised"]
    most = max(penalised, key=lambda placement: penalised[placement])
    if slow == 1:
        return f": {most}"
    if penalised[most] * 2 > slow:
        share = "all" if penalised[most] == slow else percent(penalised[most] / slow, 0)
        return f"; {share} of them have {most}"
    worst = next((row for row in patterns if row["runs"] >= PATTERN_RUNS and row["time_ratio"] > PENALISED_RATIO), None)
    return f"; worst is {worst['pattern']}, {times(worst['time_ratio'])}" if worst else ""


def meta(fits: Mapping[str, int], unseen: Sequence[float], sweep: str | None, sweeps: int) -> str:
    """Whose runs, how many of them the constants have seen, and how far off the same fits were on rows left out.

    `unseen` are the median errors of the profiles in use on rows that their fit had not seen, learned penalty included.
    """
    texts = {
        FITTED: "of studies that the constants were fitted on",
        OTHER_STUDY: "of other studies",
        UNFITTED: "with published constants, not fitted",
    }
    parts = [f"sweep {sweep}" if sweep else count(sweeps, "sweep")]
    parts += [f"{count(fits[fit], 'run')} {text}" for fit, text in texts.items() if fits.get(fit)]
    if unseen:
        low, high = percent(min(unseen), 0), percent(max(unseen), 0)
        span = low if low == high else f"{low} to {high}"
        parts.append(f"median error on rows left out, learned penalty included: {span}")
    return " · ".join(parts)


def legend(runs: int, slow: int, outside: int) -> list[tuple[str, str, str]]:
    """Symbol, index of the category colour ("" = ink) and text of each kind of point.

    `outside` runs are not of a study that their constants were fitted on.
    """
    lines = [("●", "0", f"within {PENALISED_RATIO:g}{NBSP}× of the estimate: {count(runs - slow, 'run')}")]
    if slow:
        lines.append(("○", "1", f"slower, an implementation's penalty: {count(slow, 'run')}"))
    if outside:
        lines.append(("◆", "", f"diamond: not of a study fitted on, {count(outside, 'run')}"))
    return lines


def aside(kind: str, left_out: int) -> str:
    """What to know of runs that are held against another estimate; `left_out` of them have none."""
    without = f" {count(left_out, 'run')} without one {'is' if left_out == 1 else 'are'} left out." if left_out else ""
    return f"{_ASIDE[kind]}{without}".strip()


def beyond_peak(runs: int) -> str:
    """Why runs of more than 100 % of peak are not drawn."""
    verb, whose, them = ("is", "its", "it") if runs == 1 else ("are", "their", "them")
    return (
        f"{count(runs, 'run')} above 100 % of peak {verb} not drawn: model, step time or accelerators in {whose} "
        f"log cannot all be right. The table below and the errors above include {them}; Overview lists {them} under "
        "Worth a look."
    )


def drawn_for(drawn: int, runs: int) -> str:
    """What points stand for, where not every run has its own; empty where each has.

    >>> drawn_for(2, 3).replace("\u00a0", " "), drawn_for(3, 3)
    ('2 points stand for 3 runs: where several would lie on one another, one is drawn.', '')
    """
    if drawn == runs:
        return ""
    points = count(drawn, "point")
    return f"{points} stand for {count(runs, 'run')}: where several would lie on one another, one is drawn."


def without_mfu(runs: int) -> str:
    """Why runs without an MFU are not drawn."""
    verb, whose, them = ("has", "Its page says", "it") if runs == 1 else ("have", "Their pages say", "them")
    are = "is" if runs == 1 else "are"
    return (
        f"{count(runs, 'run')} {verb} no MFU and {are} not drawn. {whose} why; the table below and the errors above "
        f"include {them}."
    )


def parity_alt(runs: int, slow: int, kind: str) -> str:
    """What the scatter shows."""
    return (
        f"Measured against MFU estimated {ESTIMATE_KINDS[kind]} of {count(runs, 'run')} on equal axes: "
        f"{number(slow)} lie more than {PENALISED_RATIO:g} times below the estimate."
    )


def memory_title(totals: Row) -> str:
    """Qualifier of the memory chart."""
    return f"median error {percent(totals['mem_error'], 1)}, {count(totals['mem_runs'], 'run')}"


def memory_alt(totals: Row) -> str:
    """What the memory chart shows."""
    return (
        f"Measured against estimated peak memory of {count(totals['mem_runs'], 'run')} on equal axes, "
        f"median error {percent(totals['mem_error'], 1)}."
    )


def patterns_alt(patterns: Sequence[Row], kind: str) -> str:
    """What the dots show."""
    listed = ", ".join(f"{row['pattern']} {times(row['time_ratio'])}" for row in patterns[:3])
    what = f"Measured over step time estimated {ESTIMATE_KINDS[kind]}"
    return f"{what} of {count(len(patterns), 'pattern')}, slowest first: {listed}."


def too_few(patterns: int) -> str:
    """What the dot chart leaves out."""
    return f"{count(patterns, 'pattern')} of fewer than {PATTERN_RUNS} runs left out." if patterns else ""


def account(rows: Sequence[Row]) -> str:
    """Every run of the scope, by whether it could be compared."""
    by_fate = {fate: sum(row["runs"] for row in rows if row["fate"] == fate) for fate in _FATES}
    total = sum(by_fate.values())
    parts = [f"{number(amount)} {_FATES[fate]}" for fate, amount in by_fate.items() if amount]
    return f"{count(total, 'run')}: {'; '.join(parts)}"


_FATES = {
    "compared": "beside their estimate",
    "not measured": "estimated, but without a measurement to compare",
    "not estimated": "that cannot be estimated",
}


def reasons(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Why runs are not compared, most first, as (reason with what to do, runs).

    Reasons that differ after their colon alone are joined without it; a single one is kept whole.
    """
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["fate"] != "compared":
            alike.setdefault((row["fate"], row["reason"].partition(":")[0]), []).append(row)
    lines = []
    for (fate, kind), members in alike.items():
        runs = sum(row["runs"] for row in members)
        lines.append((runs, _reason(fate, kind, members[0]["reason"] if len(members) == 1 else kind)))
    return [(text, count(runs, "run")) for runs, text in sorted(lines, key=lambda line: (-line[0], line[1]))]


def _reason(fate: str, kind: str, reason: str) -> str:
    if fate == "not measured":
        return f"Estimated, but {reason if reason != 'no step time' else 'no step time was logged'}."
    advice = f" {_ADVICE[kind]}" if kind in _ADVICE else ""
    return f"{capital(reason)}.{advice}"
