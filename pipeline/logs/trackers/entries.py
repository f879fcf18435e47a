"""Runs of a tracker as rows of our tables, and as bytes by which a sandbox hands them over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.logs.evidence.argument_values import node_values
from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, steps


@dataclass(frozen=True)
class Entry:
    """A run of a file that holds several.

    Attributes:
        number: its number in the file, which stays as the file grows.
        name: its name.
        steps: STEP_FACTS rows without `source`, by step; `line_no` numbers them.
        settings: columns of `runs` and their text.
        arguments: its configuration under its own names.
        unread: why it has no steps; "" where it has some.
    """

    number: int
    name: str
    steps: pl.DataFrame
    settings: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[tuple[str, str]] = ()
    unread: str = ""


def entry_of(run: TrackedRun) -> Entry:
    """A run as rows of our tables."""
    try:
        found, unread = steps(run), ""
    except ValueError as error:
        found, unread = pl.DataFrame(schema=STEP_FACTS), str(error)
    # A run that was taken up again counts on from a checkpoint: it is one run, whose steps are in order.
    ordered = found.sort("step").with_columns(line_no=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))
    return Entry(run.number, run.name, ordered, run.all_settings, list(node_values(run.config)), unread)


def to_bytes(runs: Iterable[TrackedRun]) -> bytes:
    """Runs as `from_bytes` reads them: JSON, which a forked process writes without a thread of any library."""
    return json.dumps([vars(run) | {"rows": [list(vars(row).values()) for row in run.rows]} for run in runs]).encode()


def from_bytes(data: bytes) -> list[TrackedRun]:
    """The runs of `to_bytes`. Raises ValueError for other bytes."""
    return [TrackedRun(**one | {"rows": [Row(*row) for row in one["rows"]]}) for one in json.loads(data)]
