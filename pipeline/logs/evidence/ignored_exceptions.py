"""Exceptions that Python itself passes over, with a traceback like that of a crash: a run goes on, or has ended before.

Sources of the wording: CPython's hook of finalizers, callbacks and functions called at exit (Python/errors.c
`_PyErr_WriteUnraisableMsg`; `Error in atexit._run_exitfuncs` up to 3.9), and `logging.Handler.handleError`.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

KIND = "ignored_exception"

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        KIND,
        ("Exception ignored ", "atexit._run_exitfuncs", "--- Logging error ---"),
        r"^\s?Exception ignored (?:in|while|on)\b|^\s?Error in atexit\._run_exitfuncs:\s*$|"
        r"^\s?--- Logging error ---\s*$",
    ),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""

_NEAR_LINES = 4
"""Between the announcement and its traceback, where other processes write to the same log."""
_CHAINED_LINES = 4
"""From the last line of a traceback to the head of the one raised while it was handled."""


def without_ignored(events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS without the tracebacks and exceptions that an ignored exception announces; those lines stay."""
    sources = events.filter(pl.col("kind") == KIND)["source"].unique()
    if sources.is_empty():
        return events
    numbered = events.with_row_index("row")
    in_order = numbered.filter(pl.col("source").is_in(sources.implode())).sort("source", "line_no", maintain_order=True)
    ignored: list[int] = []
    for part in in_order.partition_by("source", "rank"):
        ignored += _ignored(part.select("row", "line_no", "kind").iter_rows())
    return numbered.filter(~pl.col("row").is_in(ignored)).drop("row")


def _ignored(events: Iterator[tuple[int, int, str]]) -> Iterator[int]:
    """Rows of ignored tracebacks and of the exceptions that end them, of (row, number of the line, kind) in order.

    >>> list(_ignored(iter([(0, 7, KIND), (1, 8, "traceback"), (2, 11, "exception"), (3, 30, "traceback")])))
    [1, 2]
    """
    announced: list[int] = []
    unended, ended_at = 0, None
    for row, line_no, kind in events:
        if kind == KIND:
            announced.append(line_no)
        elif kind == "traceback":
            is_announced = bool(announced) and line_no - announced[0] <= _NEAR_LINES
            announced = announced[1:]
            if is_announced or (ended_at is not None and line_no - ended_at == _CHAINED_LINES):
                unended += 1
                yield row
        elif kind == "exception" and unended:
            unended, ended_at = unended - 1, line_no
            yield row
