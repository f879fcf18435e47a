"""Where the layout has to change: two charts on the Explorer, their sentence and the list of what flips where."""

from __future__ import annotations

import polars as pl
import streamlit as st

from sweepscope.dashboard.charts import switch_points as charts
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.text import switch_points as texts
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.dashboard.view_models.switch_points import BATCH, GPUS, Switches, batches_around, measured, switches_for
from sweepscope.dashboard.widgets import basic, lists, tables
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.reference.layout_text import full_layout_text

_TABLE = names(
    "num_gpus gbs_tokens kind layout est_mfu est_compute_per_comm est_rho_tp est_dp_per_pass est_bubble_fraction "
    "est_flops_per_comm_byte est_mfu_overlapped"
)


def draw(theme: Theme, setup: Setup, request: Request, runs: pl.DataFrame) -> None:
    """The charts of a question; `runs` are rows of `queries.explorer.alike`, which are drawn beside the estimates."""
    found = switches_for(request)
    basic.section("Where the layout has to change", "fastest of each kind by what the hardware allows; hollow: runs")
    st.html(f'<p class="ss-plain">{basic.rich(texts.answer(found, setup, request))}</p>')
    if found.base_mfu is None:
        return
    left, right = st.columns(2, gap="large")
    with left:
        _chart(theme, request, found, runs, GPUS)
    with right:
        _chart(theme, request, found, runs, BATCH)
    lists.rows([(basic.rich(name), basic.rich(value)) for name, value in texts.flip_rows(found)])
    rows = pl.concat([found.over_gpus, found.over_batches])
    layouts = pl.Series([full_layout_text(row) for row in rows.iter_rows(named=True)], dtype=pl.String)
    named = rows.with_columns(layout=layouts, kind=pl.col("kind").replace(texts.KIND))
    tables.table_twin("All points of both charts", named, _TABLE, csv_name="switch_points")


def _chart(theme: Theme, request: Request, found: Switches, runs: pl.DataFrame, axis: str) -> None:
    points = found.over_gpus if axis == GPUS else found.over_batches
    near = measured(runs, request, axis)
    values = found.counts if axis == GPUS else [each * request.asked.seq_len for each in batches_around(request.gbs)]
    shown = [value for value in values if axis != GPUS or value >= (points[GPUS].min() or 0)]  # type: ignore[operator]  # polars types the minimum of integers as any literal
    near = near.filter(pl.col(axis).is_between(shown[0], shown[-1]))
    figure = charts.draw(
        points,
        near,
        theme,
        axis=axis,
        names={kind: texts.KIND[kind] for kind in texts.KIND},
        ticks=[(value, texts.tick(axis, value)) for value in shown],
        title=texts.axis_title(axis, request),
        marks=[(letter, value) for letter, value, _ in texts.marks(found)] if axis == GPUS else [],
        hovers=(texts.hovers(points), texts.run_hovers(near)),
    )
    basic.chart(figure, key=f"switch_{axis}", alt=texts.alt(points, axis, found))
