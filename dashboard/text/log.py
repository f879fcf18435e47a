"""Sentences on a log shown at one of its lines."""

from __future__ import annotations

from pathlib import PurePath

import polars as pl

from sweepscope.dashboard.format.numbers import count, number, shortened
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.run import title

NOT_CHOSEN = "**No line is chosen.** The line numbers of evidence, on the page of a run, lead here."
NOTE = (
    "Read from where the file lies, not from the store; credentials are hidden, control characters left out and very "
    "long lines cut. The file itself still has them."
)


def unknown(path: str) -> str:
    """Why a file that no ingest has read is not opened."""
    return f"**This store knows no file {path}.** Only files that were ingested are opened."


def answer(path: str, line_no: int, shown: int) -> str:
    """Which line of which file, and how many lines around it."""
    return f"**Line {number(line_no)} of {PurePath(path).name}**, with {count(shown - 1, 'line')} around it."


def marked(evidence: pl.DataFrame, line_no: int) -> str:
    """What the line is evidence of, after its text."""
    kinds = evidence.filter(pl.col("line_no") == line_no)["kind"].to_list()
    return ", ".join(kind.replace("_", " ") for kind in kinds)


def run_name(run: Row) -> str:
    """A run of the file."""
    attempt = f", attempt {number(run['attempt'])}" if (run["attempt"] or 1) > 1 else ""
    return f"{title(run)}{attempt}"


def evidence_line(row: Row) -> tuple[str, str]:
    """One evidence line of the file: what it reports and how it reads, and its number."""
    return f"{row['kind'].replace('_', ' ')}: {shortened(row['text'].strip(), 160)}", f"line {number(row['line_no'])}"
