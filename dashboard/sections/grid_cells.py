"""The cells that Overview and Best configurations show, built once per version of the store, slice and filters."""

from __future__ import annotations

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.store import Store
from sweepscope.dashboard.report.grids import whole_grid
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice


@st.cache_resource(
    max_entries=32,
    show_spinner=False,
    hash_funcs={Store: lambda store: str(store.path), Slice: repr, Filters: repr},
)
def grid_cells(store: Store, chosen: Slice, filters: Filters) -> pl.DataFrame:
    """The rows of `whole_grid`. The frame is shared by all visits: derive new ones, change none."""
    return whole_grid(store.con, chosen, filters)
