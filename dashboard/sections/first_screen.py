"""What takes longest to find out about a grid of the first screen, found before a reader goes to it.

A version of the store never changes, so what was found for one visit holds for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from threading import Lock, Timer
from typing import Any

import duckdb
import polars as pl

from sweepscope.dashboard.app.store import Store, open_store
from sweepscope.dashboard.queries import overview as queries
from sweepscope.dashboard.queries.slices import slices
from sweepscope.dashboard.sections import estimator_pick
from sweepscope.dashboard.sections.grid_cells import grid_cells
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice, others, resolve_slice
from sweepscope.dashboard.text.overview import furthest_behind
from sweepscope.pipeline.errors import SweepscopeError

GRIDS_LISTED = 4
"""Other grids that the first screen lists; more are behind a fold."""
_AFTER_S = 0.5
"""Seconds after a page's end: what it sends goes first."""
_begun: set[object] = set()
_one_at_a_time = Lock()


def proposals(store: Store, chosen: Slice, grid: pl.DataFrame) -> list[tuple[Mapping[str, Any], str]]:
    """What to run next in the cells that promise most, as `estimator_pick.proposed` has it: a search per cell."""
    if not store.has("estimator_residuals"):
        return []
    cells = furthest_behind(grid, queries.behind(chosen.origin).run(store.con))
    return estimator_pick.proposed(store, chosen, cells, estimator_pick.usual_framework(grid))


def read_ahead() -> None:
    """Has the first screen's grid and those that it lists read in a thread, once per version of the store."""
    with suppress(SweepscopeError):
        store = open_store()
        if store.path not in _begun:
            _begun.add(store.path)
            start(store.for_thread())


def start(store: Store) -> None:
    """Begins `read` in a thread that ends with the server."""
    timer = Timer(_AFTER_S, read, [store])
    timer.daemon = True
    timer.start()


def read(store: Store) -> None:
    """Asks what the first screen asks of each grid, in the order in which a reader is likely to open them.

    What a version published by other software cannot answer is left to the page that asks.
    """
    with _one_at_a_time, suppress(duckdb.Error, SweepscopeError):
        known = slices().run(store.con)
        first, _ = resolve_slice(Filters(), known)
        if first is None:
            return
        for chosen in (first, *(other.slice for other in others(first, known)[:GRIDS_LISTED])):
            for query in (queries.repeats(chosen), queries.without_mfu(chosen)):
                query.run(store.con)
            proposals(store, chosen, grid_cells(store, chosen, Filters()))
