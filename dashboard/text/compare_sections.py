"""Sentences of the sections of the comparison: subtracted waterfalls, curves, what differs and what is folded."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format.numbers import count, in_sentence, points
from sweepscope.dashboard.text.compare import together
from sweepscope.dashboard.view_models.compare import Subject
from sweepscope.dashboard.view_models.compare_curves import Overlay
from sweepscope.dashboard.view_models.compare_losses import Difference


def difference_title(explained: Difference, first: str, second: str) -> tuple[str, str]:
    """Heading of the subtracted waterfalls and what a point of them is."""
    of = f"{first}'s time per token" if explained.is_same_work else "each one's own step"
    kind = "estimated steps, " if explained.is_estimated else ""
    return f"What {first} saves against {second}", f"{kind}points of {of}; to the right: {first} is better"


def difference_alt(explained: Difference, first: str, second: str) -> str:
    """What the bars show, for those who cannot see them."""
    ends = sorted(explained.terms, key=lambda term: -abs(term.gain))[:3]
    listed = ", ".join(f"{in_sentence(term.label)} {points(term.gain)}" for term in ends)
    return f"Bars of what {first} saves against {second} in points, largest: {listed}."


def difference_table(explained: Difference, first: str, second: str) -> pl.DataFrame:
    """The bars as figures: points of both runs and what the first saves."""
    rows = [(term.label, term.first, term.second, term.gain) for term in explained.terms]
    rows.append(("Together", sum(row[1] for row in rows), sum(row[2] for row in rows), explained.total))
    return pl.DataFrame(
        [(name, *(round(100 * value, 2) for value in values)) for name, *values in rows],
        schema={
            "Part of the step": pl.String,
            f"{first}, points": pl.Float64,
            f"{second}, points": pl.Float64,
            f"{first} saves": pl.Float64,
        },
        orient="row",
    )


def no_difference(first: Subject, second: Subject, estimated: set[str], reasons: dict[str, str]) -> str:
    """Why there are no two waterfalls to subtract."""
    lacking: dict[str, list[str]] = {}
    for one in (first, second):
        run_id = one.runs[0]["run_id"]
        if run_id not in estimated:
            lacking.setdefault(reasons.get(run_id, "not in this store"), []).append(one.letter)
    which = " or ".join(f"{' and '.join(letters)} ({reason})" for reason, letters in lacking.items())
    return f"The step times are not taken apart: there is no estimate for {which}."


def curves_alt(overlay: Overlay) -> str:
    """What the curves show, for those who cannot see them."""
    ends = [
        f"{letter} ends at {overlay.measure.text(curve.points['value'][-1] / overlay.measure.factor)}"
        for letter, _, curve in overlay.curves[:6]
    ]
    return f"{overlay.measure.title} of {count(len(overlay.letters), 'run')}: {', '.join(ends)}."


def curves_note(columns: Sequence[Subject], drawn: set[str], what: str) -> str:
    """Which columns have no curve, and why; empty when all have one."""
    without = [one for one in columns if one.letter not in drawn]
    published = [one.letter for one in without if one.runs[0]["origin"] == "published"]
    silent = [one.letter for one in without if one.letter not in published]
    reasons = [f"{together(silent)} logged no {what}"] if silent else []
    reasons += (
        [f"{together(published)} {'is' if len(published) == 1 else 'are'} published without steps"] if published else []
    )
    return f"No curve: {'; '.join(reasons)}." if reasons else ""


def meta(columns: Sequence[Subject], left_out: int) -> str:
    """Number of runs, and how many the address names beyond what is compared."""
    runs = sum(len(one.runs) for one in columns)
    groups = f" in {count(len(columns), 'group')}" if any(one.is_group for one in columns) else ""
    more = f"; {count(left_out, 'further run')} of the address left out: 20 are compared at most" if left_out else ""
    return f"{count(runs, 'run')}{groups}{more}"


def unknown(run_ids: Sequence[str]) -> str:
    """Ids that the store does not have."""
    some = ", ".join(run_ids[:5]) + (" and others" if len(run_ids) > 5 else "")
    return f"This store has no run {some}; left out." if run_ids else ""


def differing_qualifier(differing: int) -> str:
    """How many settings differ."""
    return count(differing, "setting") if differing else "no setting that their files state differs"


def folded_title(equal: int, alone: int) -> str:
    """Title of what is folded away."""
    parts = [
        f"{count(equal, 'setting')} alike" if equal else "",
        f"{count(alone, 'setting')} that one run states alone" if alone else "",
    ]
    return ", ".join(part for part in parts if part)
