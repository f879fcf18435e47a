"""The sections of a report on one store, for one origin."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.queries.slices import runs_of, slices
from sweepscope.dashboard.report import grids, outcomes
from sweepscope.dashboard.report.section import Section
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice, offered_origins, others, resolve_slice

MOST_GRIDS = 4


@dataclass(frozen=True)
class Asked:
    """What a report is on: an origin and a sweep, or what the dashboard would show first."""

    origin: str | None = None
    sweep: str | None = None


def sections(con: Reader, asked: Asked, theme: Theme) -> tuple[list[Section], tuple[str, ...]]:
    """The sections that the store has rows for, and what of `asked` it does not have."""
    found = slices().run(con)
    chosen, absent = resolve_slice(Filters(origin=asked.origin, sweep=asked.sweep), found)
    origin = chosen.origin if chosen else _origin(con, asked.origin)
    parts: list[Section | None] = [grids.headline(con, chosen, origin)]
    if chosen is not None:
        of_origin = runs_of(chosen.origin).run(con)["runs"].item()
        parts += [
            grids.best(con, one, theme, of_origin, number=number)
            for number, one in enumerate(_shown(chosen, found), start=1)
        ]
        parts.append(grids.scales(con, chosen, theme))
    if origin is not None:
        sweep = chosen.sweep if chosen else None
        parts += [outcomes.failed(con, origin, sweep, theme), outcomes.theory(con, origin, sweep, theme)]
    parts.append(outcomes.published(con, origin, theme))
    return [part for part in parts if part is not None], absent


def _shown(chosen: Slice, found: pl.DataFrame) -> list[Slice]:
    """The chosen grid, and those of its origin that answer most after it."""
    return [chosen, *(other.slice for other in others(chosen, found)[: MOST_GRIDS - 1])]


def _origin(con: Reader, wanted: str | None) -> str | None:
    """Whose failures are listed where no run has a cell: the wanted origin, else the first there is."""
    rows = con.frame("SELECT DISTINCT origin FROM runs", {})
    there = offered_origins(rows["origin"].to_list())
    return wanted if wanted in there else next(iter(there), None)
