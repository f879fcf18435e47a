"""The cells that Overview and Best configurations show, built once per version of the store, slice and filters."""

from __future__ import annotations

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.store import Store
from sweepscope.dashboard.queries import cells as queries
from sweepscope.dashboard.queries import plans
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.view_models import cells


@st.cache_resource(
    max_entries=16,
    show_spinner=False,
    hash_funcs={Store: lambda store: str(store.path), Slice: repr, Filters: repr},
)
def grid_cells(store: Store, chosen: Slice, filters: Filters) -> pl.DataFrame:
    """One row per cell of the slice, with its outcomes under the filters and what is planned for it.

    The frame is shared by all visits: derive new ones, change none.
    """
    found, ended = queries.cells(chosen, filters).run(store.con), queries.outcomes(chosen, filters).run(store.con)
    return cells.with_planned(cells.with_outcomes(found, ended, filters), plans.waiting(chosen).run(store.con))
