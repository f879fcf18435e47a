"""The sections of a report on one store, for one origin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import polars as pl

from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.queries.slices import runs_of, slices
from sweepscope.dashboard.report import grids, outcomes, question
from sweepscope.dashboard.report.section import Section
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice, offered_origins, others, resolve_slice
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile

MOST_GRIDS = 4


@dataclass(frozen=True)
class Asked:
    """What a report is on: an origin and a sweep, or what the dashboard would show first.

    `since` is the first day of what is new.
    """

    origin: str | None = None
    sweep: str | None = None
    since: date | None = None


def sections(
    con: Reader, asked: Asked, theme: Theme, choose: ChooseProfile = choose_profile
) -> tuple[list[Section], tuple[str, ...]]:
    """The sections that the store has rows for, and what of `asked` it does not have.

    `choose` finds the constants by which layouts that were not run are estimated.
    """
    found = slices().run(con)
    chosen, absent = resolve_slice(Filters(origin=asked.origin, sweep=asked.sweep), found)
    if chosen is not None and asked.origin is None and asked.sweep is None and _has_own_besides(con, chosen):
        chosen = None
    origin = chosen.origin if chosen else _origin(con, asked.origin)
    scope = Scope(origin, chosen.sweep if chosen else None) if origin is not None else None
    parts: list[Section | None] = []
    if scope is not None:
        parts.append(question.question(con, scope))
        parts.append(question.recent(con, scope, asked.since) if asked.since else None)
    parts.append(grids.headline(con, chosen, origin))
    if chosen is not None:
        of_origin = runs_of(chosen.origin).run(con)["runs"].item()
        parts += [
            grids.best(con, one, theme, of_origin, number=number)
            for number, one in enumerate(_shown(chosen, found), start=1)
        ]
        parts.append(grids.scales(con, chosen, theme))
    if scope is not None:
        parts += [
            outcomes.failed(con, scope.origin, scope.sweep, theme),
            outcomes.theory(con, scope.origin, scope.sweep, theme),
        ]
    parts.append(outcomes.published(con, origin, theme))
    parts.append(question.next_steps(con, scope, choose) if scope is not None else None)
    return [part for part in parts if part is not None], absent


def _shown(chosen: Slice, found: pl.DataFrame) -> list[Slice]:
    """The chosen grid, and those of its origin that answer most after it."""
    return [chosen, *(other.slice for other in others(chosen, found)[: MOST_GRIDS - 1])]


def _has_own_besides(con: Reader, chosen: Slice) -> bool:
    """Whether a grid of others is all there is to rank, while runs of one's own lack what a grid needs."""
    return chosen.origin != "measured" and runs_of("measured").run(con)["runs"].item() > 0


def _origin(con: Reader, wanted: str | None) -> str | None:
    """Whose failures are listed where no run has a cell: the wanted origin, else the first there is."""
    rows = con.frame("SELECT DISTINCT origin FROM runs", {})
    there = offered_origins(rows["origin"].to_list())
    return wanted if wanted in there else next(iter(there), None)
