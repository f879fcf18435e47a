"""All questions of a home, in the order in which they are usually asked.

`sweepscope mcp` offers them as tools, and the dashboard's server at `/api`: names, descriptions and types are those of
the methods. None of them writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sweepscope.dashboard.answers.answer import Answer
from sweepscope.dashboard.answers.estimated import Estimated
from sweepscope.dashboard.answers.measured import Measured

Question = Callable[..., Answer]

GUIDE = (
    "Runs of LLM training sweeps, read from their logs: which parallel layout is fastest, how sure that is, why others "
    "failed, what to run next. Begin with `overview`. Each answer has a sentence, rows and the SQL behind them; for "
    "all else read `describe` and ask `sql`. Units are the suffixes of names (_s, _bytes); mfu is 0 to 1. "
    "Unknown is null. measured rows are the user's own runs; never mix origins in one comparison."
)
"""What a program reads before it asks."""


def questions(home: Path) -> tuple[Question, ...]:
    """The questions; each takes what its signature says and raises SweepscopeError with a remedy."""
    runs, estimator = Measured(home), Estimated(home)
    return (
        runs.overview,
        runs.best_configs,
        runs.scaling,
        runs.failures,
        runs.next_runs,
        estimator.estimate,
        estimator.search,
        runs.describe,
        runs.sql,
    )
