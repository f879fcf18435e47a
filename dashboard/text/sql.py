"""The sentences of SQL."""

from __future__ import annotations

from sweepscope.dashboard.format.numbers import count, number, significant
from sweepscope.dashboard.sandbox.run_query import Limits

HOW_TO_READ = (
    "**Units.** Columns are as stored: bytes, seconds, and fractions of peak from 0 to 1. NULL means not logged or not "
    "published, never 0.",
    "**Safety.** A query can read this store and nothing else: no files, no network, no writing.",
    "**Counting.** The table runs holds all origins: filter on origin, and on duplicate_of IS NULL when you count.",
)


def answer(tables: int, runs: int, limits: Limits) -> str:
    """Tables and limits of a query."""
    return (
        f"**{count(tables, 'table')} and views, {count(runs, 'run')}, one DuckDB file.** "
        f"Each query runs read-only in a process of its own, for at most {limits.wall_s:g} seconds."
    )


def result_line(rows: int, seconds: float, *, is_truncated: bool) -> str:
    """How much came back and how long it took."""
    took = f"{number(seconds * 1000)} ms" if seconds < 1 else f"{significant(seconds)} s"
    if is_truncated:
        return (
            f"**The first {count(rows, 'row')}**, in {took}. There are more: add LIMIT or aggregate, or run "
            "sweepscope query, which has no limit."
        )
    return f"**{count(rows, 'row')}** in {took}."


def progress(place: int, running_s: float, slots: int, limits: Limits) -> str:
    """How far a query is that has no answer yet; `place` is that in the queue, 0 once it runs."""
    if place:
        return (
            f"**Waiting, number {place} in the queue.** {slots} queries of other visitors are running, each for at "
            f"most {limits.wall_s:g} s."
        )
    return f"**Running** for {running_s:.0f} s of at most {limits.wall_s:g} s."


def from_link() -> str:
    """Note above a query that came with the address and has not run."""
    return "This query came with the link. Read it, then run it."
