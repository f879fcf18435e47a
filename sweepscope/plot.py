"""Charts of the dashboard as plotly figures, for notebooks: `sweepscope.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweepscope.pipeline.errors import UsageError

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sweepscope.api import Store
    from sweepscope.dashboard.queries.reader import Reader
    from sweepscope.dashboard.selection.filters import Filters
    from sweepscope.dashboard.selection.slices import Slice


def heatmap(
    store: Store,
    *,
    metric: str = "mfu",
    origin: str | None = None,
    accelerator: str | None = None,
    seq_len: int | None = None,
    gbs_tokens: int | None = None,
    sweep: str | None = None,
) -> go.Figure:
    """The grid of models by node counts: the best layout of each cell, or why there is none.

    Args:
        store: what `sweepscope.open` returns.
        metric: mfu, throughput, step_time, cost, memory, failures or hfu.
        origin, accelerator, seq_len, gbs_tokens, sweep: narrow the grid; without them it is the one that answers most,
            as on the page Best configurations. The title says which grid it is.

    Raises UsageError for a metric or a value that the store does not have.
    """
    from sweepscope.dashboard.charts import heatmap as chart
    from sweepscope.dashboard.format.metrics import METRICS
    from sweepscope.dashboard.format.theme import LIGHT
    from sweepscope.dashboard.queries.reader import Answers, Reader
    from sweepscope.dashboard.report.grids import whole_grid
    from sweepscope.dashboard.selection.filters import Filters
    from sweepscope.dashboard.text import cell as texts
    from sweepscope.pipeline.store.published import connect, current

    if metric not in METRICS:
        raise UsageError(f"There is no metric {metric!r}. There are: {', '.join(METRICS)}.")
    filters = Filters(origin=origin, accelerator=accelerator, seq_len=seq_len, gbs_tokens=gbs_tokens, sweep=sweep)
    with connect(current(store.home)) as connection:
        reader = Reader(connection, Answers())
        chosen = _chosen(reader, filters)
        grid = whole_grid(reader, chosen)
    shown = METRICS[metric]
    hovers = [texts.hover(row, shown) for row in grid.iter_rows(named=True)]
    return _titled(chart.draw(grid, shown, LIGHT, hovers=hovers), f"{shown.label}: {_words(chosen)}")


def scaling(
    store: Store,
    *,
    origin: str | None = None,
    accelerator: str | None = None,
    seq_len: int | None = None,
    gbs_tokens: int | None = None,
    sweep: str | None = None,
) -> go.Figure:
    """Throughput per GPU of each model's best layouts against the fewest nodes it ran on, in per cent.

    The arguments are those of `heatmap`. Raises UsageError where no model completed on any size.
    """
    from sweepscope.dashboard.charts.scaling import draw_share
    from sweepscope.dashboard.format.theme import LIGHT
    from sweepscope.dashboard.queries.reader import Answers, Reader
    from sweepscope.dashboard.queries.scaling import best_layouts
    from sweepscope.dashboard.selection.filters import Filters
    from sweepscope.dashboard.text.scaling import hover
    from sweepscope.dashboard.view_models import scaling as view
    from sweepscope.pipeline.store.published import connect, current

    filters = Filters(origin=origin, accelerator=accelerator, seq_len=seq_len, gbs_tokens=gbs_tokens, sweep=sweep)
    with connect(current(store.home)) as connection:
        reader = Reader(connection, Answers())
        chosen = _chosen(reader, filters)
        points = best_layouts(chosen, Filters()).run(reader)
    noun = view.size_noun(points)
    points = view.against(view.with_size(points, noun), view.Baseline.parse("best"))
    lines = view.drawn_lines(points)
    if not lines:
        raise UsageError(f"No model has a completed run to draw: {_words(chosen)}. Choose another grid.")
    hovers = [hover(row, noun) for row in points.iter_rows(named=True)]
    figure = draw_share(points, LIGHT, noun=noun, column="scaling_efficiency", lines=lines, hovers=hovers)
    return _titled(figure, f"Scaling efficiency, %: {_words(chosen)}")


def _chosen(reader: Reader, filters: Filters) -> Slice:
    """The grid of these values that answers most. Raises UsageError naming the values that there are not."""
    from sweepscope.dashboard.queries.slices import slices
    from sweepscope.dashboard.selection.slices import resolve_slice

    found = slices().run(reader)
    chosen, absent = resolve_slice(filters, found)
    if absent:
        wanted = ", ".join(f"{name} {getattr(filters, name)!r}" for name in absent)
        raise UsageError(f"The store has no grid of {wanted}. Its runs: store.runs().")
    if chosen is None:
        raise UsageError("No run of this store states model, nodes, sequence length and batch: there is no grid.")
    return chosen


def _words(chosen: Slice) -> str:
    from sweepscope.dashboard.format.numbers import plain
    from sweepscope.dashboard.text.overview import slice_words

    return plain(slice_words(chosen))


def _titled(figure: go.Figure, title: str) -> go.Figure:
    """The figure in the dashboard's look, with a title: outside a page nothing else says what it is."""
    from sweepscope.dashboard.format.theme import LIGHT, template

    top = (figure.layout.margin.t or 8) + 28
    heading = {
        "text": title,
        "x": 0,
        "xanchor": "left",
        "y": 1,
        "yanchor": "top",
        "pad": {"t": 4},
        "font": {"size": 14},
    }
    figure.update_layout(template=template(LIGHT), title=heading, margin_t=top, paper_bgcolor=LIGHT.page)
    if figure.layout.height:
        figure.update_layout(height=figure.layout.height + 28)
    return figure
