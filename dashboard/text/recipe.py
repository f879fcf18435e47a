"""Words of the decision flowchart and of the chart of scale and size."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import count, plain
from sweepscope.dashboard.queries.query import Row
from sweepscope.pipeline.estimate.advice.branches import LARGE_MODEL, LARGE_SCALE
from sweepscope.pipeline.estimate.advice.recipe import Stop

QUALIFIER = "choose a branch; ● is the one that this question takes"
ANOTHER_WAY = "Another branch than this question takes: these are the rules there."
OWN_RULES = ". Rules of your own: **rules.toml** in the home, see docs/estimator.md."
SCALE_QUALIFIER = "what the slides advise, and the best runs here; hollow = published, ★ = this question"
_NAMED = 3


def option(name: str, *, is_own: bool) -> str:
    """A branch on its button.

    >>> option("GPU-rich", is_own=True), option("GPU-poor", is_own=False)
    ('● GPU-rich', 'GPU-poor')
    """
    return f"● {name}" if is_own else name


def rules_title(stop: Stop) -> str:
    """How many rules apply at a step."""
    return count(len(stop.advice), "rule") if stop.advice else "no rule"


def scale_hover(row: Row) -> str:
    """Hover of a best run, as HTML for plotly."""
    return (
        f"<b>{plain(row['model'] or 'model unknown')}</b><br>{count(row['num_gpus'], 'GPU')}, "
        f"{plain(row['layout'] or 'layout unknown')}<br>{performance(row)}, {row['origin']}"
    )


def scale_alt(runs: int) -> str:
    """What the chart shows, in one sentence."""
    return f"GPUs across, parameters upwards: four regions of advice and {count(runs, 'best run')} of this store."


def open_question(rows: Sequence[Row]) -> str:
    """What this store's runs answer where the slides have a question mark; published ones named as such."""
    there = [row for row in rows if row["params"] > LARGE_MODEL and row["num_gpus"] < LARGE_SCALE]
    where = f"Above 100B on fewer than {LARGE_SCALE} GPUs the slides have a question mark."
    if not there:
        return f"{where} No run of this store is there."
    own = [row for row in there if row["origin"] != "published"] or there
    best = sorted(own, key=lambda row: -(row["mfu"] or 0))[:_NAMED]
    named = "; ".join(
        f"{row['model']} on {row['num_gpus']} GPUs {row['layout'] or 'layout unknown'} ({performance(row)})"
        for row in best
    )
    return f"{where} Best here, {own[0]['origin']}: **{named}**."
