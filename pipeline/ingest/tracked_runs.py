"""Runs of which several are in one file of a tracker: each is a source of its own until its rows are complete.

`sources_of` makes a source of each under a path below that of its file, so that the fold takes them for runs side by
side. `under_their_files` gives their rows the path of the file, the number of the run in it as the line, and run ids
that go with the file when it is moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.trackers.entries import Entry

PLACES = pl.Schema({"place": pl.String, "file": pl.String, "number": pl.Int64})
"""A row per run: the path of its source, its file, and its number in it."""


@dataclass(frozen=True)
class TrackedSources:
    """Runs as sources.

    Attributes:
        sources: rows as of the given ones.
        steps: STEP_FACTS rows.
        sidecars: SIDECAR_SETTINGS rows of what they state.
        documents: the same of their configurations, under their own names.
        places: PLACES rows.
        unread: rows of `rejects` for runs without steps.
    """

    sources: pl.DataFrame
    steps: pl.DataFrame
    sidecars: list[dict[str, str]]
    documents: list[dict[str, str]]
    places: pl.DataFrame
    unread: list[dict[str, object]]


def sources_of(tracked: Sequence[tuple[int, str, Entry]], sources: pl.DataFrame) -> TrackedSources:
    """Each run as a source.

    Args:
        tracked: the source of the file, the path that the run's source gets, and the run.
        sources: a row per file, with its number `source`.
    """
    paths = sources["path"]
    read = [one for one in tracked if not one[2].steps.is_empty()]
    first = sources.height
    of_files = sources[[source for source, _, _ in read]] if read else sources.clear()
    places = pl.Series([place for _, place, _ in read], dtype=pl.String)
    rows = of_files.with_columns(
        source=pl.int_range(first, first + pl.len(), dtype=pl.Int64),
        path=places,
        unit=places,
        run_dir=places,
        job=pl.lit(""),
        launch=pl.lit(""),
        kind=pl.lit("history"),
    )
    steps = [
        conform(one.steps.with_columns(source=pl.lit(first + at)), STEP_FACTS) for at, (_, _, one) in enumerate(read)
    ]
    of_places = [(place, one) for _, place, one in read]
    return TrackedSources(
        sources=rows,
        steps=pl.concat(steps) if steps else pl.DataFrame(schema=STEP_FACTS),
        sidecars=[stated for place, one in of_places for stated in _stated(place, one.settings.items())],
        documents=[stated for place, one in of_places for stated in _stated(place, one.arguments)],
        places=pl.DataFrame(
            [(place, paths[source], one.number) for source, place, one in read], schema=PLACES, orient="row"
        ),
        unread=[
            {
                "file": paths[source],
                "line_no": one.number,
                "table": "steps",
                "column": None,
                "reason": f"a run without steps: {one.unread}",
                "raw": one.name,
            }
            for source, _, one in tracked
            if one.steps.is_empty()
        ],
    )


def _stated(place: str, values: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {"unit": place, "path": place, "name": name, "value": value, "setting_source": "config_file"}
        for name, value in values
    ]


def under_their_files(tables: dict[str, pl.DataFrame], places: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The tables with such rows under the path of their file.

    Args:
        tables: rows by table.
        places: PLACES rows.
    """
    if places.is_empty():
        return tables
    files = dict(places.select("place", "file").iter_rows())
    runs = tables["runs"].select("run_id", "source_path").join(places, left_on="source_path", right_on="place")
    ids = {old: run_id(file, f"line {number}") for old, file, number in runs.select("run_id", "file", "number").rows()}
    return {name: _renamed(name, frame, files, ids, places) for name, frame in tables.items()}


def _renamed(
    name: str, frame: pl.DataFrame, files: dict[str, str], ids: dict[str, str], places: pl.DataFrame
) -> pl.DataFrame:
    if name == "runs":
        numbers = dict(places.select("place", "number").iter_rows())
        number = pl.col("source_path").replace_strict(numbers, default=None, return_dtype=pl.Int64)
        frame = frame.with_columns(line_no=pl.coalesce(number, "line_no"))
    paths = [column for column in ("source_path", "file", "setting_path", "stated_in") if column in frame.columns]
    keys = [column for column in ("run_id", "duplicate_of") if column in frame.columns]
    return frame.with_columns(pl.col(paths).replace(files), pl.col(keys).replace(ids))
