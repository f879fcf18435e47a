"""No page says that the hardware allows less than a run reached: cells of the demo's store.

Every sixth grid, and every one with `SWEEPSCOPE_THOROUGH=1`: each cell asks for a search of all layouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.queries import cells as cell_queries
from sweepscope.dashboard.queries import explorer as explorer_queries
from sweepscope.dashboard.queries import slices
from sweepscope.dashboard.sections import estimator_pick
from sweepscope.dashboard.selection.filters import GRID, Filters
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import best_cell
from sweepscope.dashboard.text.allowed import ALLOWS
from sweepscope.dashboard.view_models import cells, explorer
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.store import published
from tests.properties import THOROUGH

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def con(demo_home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with published.connect(published.current(demo_home)) as connection:
        for view in ("ranked_layouts", "grid_cells"):  # each grid asks for them again
            connection.execute(f"CREATE TEMP TABLE {view} AS SELECT * FROM {view}")
        yield connection


def percent(text: str) -> float:
    """MFU of the text of a fact, as printed."""
    return float(text.removeprefix("~").partition(numbers.NBSP)[0])


def test_nothing_is_allowed_below_what_was_measured(con: duckdb.DuckDBPyConnection) -> None:
    offered = slices.slices().run(con).select(GRID).unique(maintain_order=True)
    held = beaten = 0
    shapes = {
        origin: explorer.store_models(explorer_queries.models(origin).run(con)) for origin in offered["origin"].unique()
    }
    for grid in (Slice(*row) for row in offered.gather_every(1 if THOROUGH else 6).iter_rows()):
        none = Filters()
        rows = cells.with_outcomes(
            cell_queries.cells(grid, none).run(con), cell_queries.outcomes(grid, none).run(con), none
        )
        for cell in rows.filter(pl.col("run_id").is_not_null()).to_dicts():
            setup = estimator_pick.setup_of(shapes[grid.origin].get(cell["model"]), grid, cell, cell["framework"])
            if setup is None:
                continue
            pick = estimator_pick.pick_of(setup.request(choose_profile), "")
            facts = best_cell.expected(pick, cell) if pick.row is not None else []
            for name, value in facts:
                if name == ALLOWS and cell["mfu"] is not None:
                    held += 1
                    assert percent(value) >= round(100 * cell["mfu"], 1) - 0.1, (cell["model"], cell["layout"])
            beaten += any("too low" in value for _, value in facts)
    assert held > 10
    assert beaten > 0  # the store has runs faster than their estimate: they are told
