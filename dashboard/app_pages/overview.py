"""Overview: the calm first screen. One answer, four figures, the grid in small, three short lists."""

from __future__ import annotations

from urllib.parse import urlencode

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.visits import last_visit
from sweepscope.dashboard.charts import heatmap
from sweepscope.dashboard.charts.grid import Grid
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.metrics import METRICS, Metric
from sweepscope.dashboard.queries import cells as cell_queries
from sweepscope.dashboard.queries import history, plans
from sweepscope.dashboard.queries import live as live_queries
from sweepscope.dashboard.queries import overview as queries
from sweepscope.dashboard.queries.failures import Scope, endings, totals
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.sections import first_screen, page_head
from sweepscope.dashboard.sections.grid_cells import grid_cells
from sweepscope.dashboard.selection.filters import GRID, Filters, to_query
from sweepscope.dashboard.selection.slices import Slice, others
from sweepscope.dashboard.text import advisor as advisor_texts
from sweepscope.dashboard.text import best as grid_texts
from sweepscope.dashboard.text import cell as cell_texts
from sweepscope.dashboard.text import live as live_texts
from sweepscope.dashboard.text import overview as texts
from sweepscope.dashboard.view_models import cells, live
from sweepscope.dashboard.widgets import basic, folds, grid_panel, lists, tables, urls

TITLE = "Overview"
_NARROWEST_CELL = 84  # px: one line, a value or the word of an empty cell
_NARROWEST_SHORT_CELL = 37  # px: a value without its unit
_ROWS_BEHIND = {
    "regressions": history.regressions,
    "runs_quarantined": queries.quarantined,
    "runs_diverged": queries.diverged,
    "runs_without_cell": queries.without_cell,
    "runs_in_conflict": queries.conflicts,
}
_STATUS_BEHIND = {"runs_cut_off": "truncated", "runs_without_end": "unknown"}
_OWN_TABLE = (
    "model",
    "num_gpus",
    "layout",
    "mfu",
    "tokens_per_s_per_gpu",
    "usd_per_m_tokens",
    "step_time_s",
    "accelerator",
    "seq_len",
    "gbs_tokens",
    "runs_completed",
    "run_id",
    "differs",
    "without_speed",
)
_TABLE = (
    "model",
    "num_nodes",
    "cell_state",
    "layout",
    "mfu",
    "tokens_per_s_per_gpu",
    "usd_per_m_tokens",
    "runs_completed",
    "runs_tried",
)


def _page(view: View) -> None:
    chosen = view.chosen
    own = queries.completed("measured").run(view.store.con)
    if chosen is None:
        if own.height or _own_ended(view)["runs_tried"]:
            _draw_own_first(view, own)
        else:
            page_head.no_grid(TITLE, view.store.con)
        return
    # The first screen shows the whole grid; filters inside it belong to the pages that explore.
    grid = grid_cells(view.store, chosen, Filters())
    if "open_cell" in st.session_state:
        follow(_cell_url(view.filters, st.session_state.pop("open_cell")))
    scope = grid_texts.scope(int(grid["runs_tried"].sum()), view.origin_runs, chosen.origin)
    meta = texts.meta(scope, chosen.study, view.store.version, numbers.moment(view.store.published_at))
    is_own = chosen.origin == "measured"
    ended = cell_queries.outcomes(chosen, Filters())
    own_runs, in_grid = int(own["runs_completed"].sum()), cells.completed(ended.run(view.store.con)) if is_own else 0
    is_narrowed = any(getattr(view.filters, name) is not None for name in GRID if name != "origin")
    has_more = own_runs > in_grid
    outside = own if is_own and has_more and not is_narrowed else None
    has_own = own.height > 0 or _own_ended(view)["runs_tried"] > 0
    own_first = has_own and not is_own and view.filters.origin is None
    if own_first:
        _draw_own_first(view, own)
        basic.section(texts.BESIDE[chosen.origin], meta)
        page_head.say_no_own_grid(view)
        st.html(f'<p class="ss-plain">{basic.badge(chosen.origin)} {basic.rich(texts.answer(grid))}</p>')
    else:
        answer = texts.answer(grid) if outside is None else texts.own_answer(outside)
        basic.head(TITLE, answer, meta, origins=(chosen.origin,), links=shell.other_origins(view))
        shell.say_ignored(view)
    counts = queries.repeats(chosen).run(view.store.con).row(0, named=True)
    wider = totals(Scope(chosen.origin, chosen.sweep)).run(view.store.con).row(0, named=True)
    reasons = queries.without_mfu(chosen).run(view.store.con)
    basic.figures(texts.figures(grid, counts["layouts"], counts["repeated"], wider, reasons, own=outside))
    if not own_first:
        page_head.say_no_own_grid(view)
    if has_more and is_own:
        _draw_own(own, in_grid)
    left, right = st.columns([0.62, 0.38], gap="large")
    with left, st.container(gap="xsmall"):
        _draw_grid(grid, chosen, view)
        _draw_other_grids(chosen, view)
    with right, st.container(gap="medium"):
        _draw_lists(grid, chosen, view, whose="measured" if own_first else chosen.origin)


def _draw_own_first(view: View, own: pl.DataFrame) -> None:
    """One's own runs at the head, where a grid shows none of them: what is known, and what they would have to state."""
    ended = _own_ended(view)
    if own.is_empty():
        causes = endings(Scope("measured", None)).run(view.store.con).to_dicts()
        links = [("Why they failed", "failures?origin=measured"), *shell.other_origins(view)]
        basic.head(TITLE, texts.none_completed(ended, causes), texts.ended(ended), origins=("measured",), links=links)
        shell.say_ignored(view)
        page_head.own_runs_links()
        return
    lacks = texts.lacking(queries.lacking("measured").run(view.store.con).row(0, named=True))
    basic.head(TITLE, texts.own_answer(own), texts.ended(ended), origins=("measured",), links=shell.other_origins(view))
    shell.say_ignored(view)
    if lacks:
        basic.note(lacks)
    _draw_own(own, 0)
    page_head.own_runs_links()


def _own_ended(view: View) -> Row:
    """How one's own runs ended, whatever the grid on screen."""
    return totals(Scope("measured", None)).run(view.store.con).row(0, named=True)


def _draw_own(own: pl.DataFrame, in_grid: int) -> None:
    """All completed runs of one's own, whatever their batch, sequence and accelerator: no run is out of sight."""
    if own.is_empty():
        return
    basic.section("Your completed runs", texts.own_qualifier(own, in_grid))
    tables.table(own, [name for name in _OWN_TABLE if own[name].count()], key="own_runs")


def _cell_url(filters: Filters, cell: tuple[str, str]) -> str:
    return f"best?{urlencode({**to_query(filters), 'model': [cell[0]], 'nodes': [cell[1]]}, doseq=True)}"


def _open() -> None:
    """Remembers the clicked cell; the page then leads to it, because a callback may not switch pages."""
    points = st.session_state.overview_heat["selection"]["points"]
    if points:
        st.session_state.open_cell = tuple(points[0]["customdata"])


def _draw_grid(grid: pl.DataFrame, chosen: Slice, view: View) -> None:
    metric: Metric = METRICS["mfu"] if grid["mfu"].count() else METRICS["throughput"]
    basic.section(f"Best {numbers.in_sentence(metric.label)} by model and nodes", texts.slice_words(chosen))
    drawn = cells.drawn(grid)
    hovers = [cell_texts.hover(row, metric) for row in drawn.iter_rows(named=True)]
    is_narrow = basic.is_narrow()
    figure = heatmap.draw(drawn, metric, view.theme, hovers=hovers, has_layouts=False, is_narrow=is_narrow)
    with st.container(key="grid"):
        narrowest = _NARROWEST_SHORT_CELL if is_narrow else _NARROWEST_CELL
        grid_panel.keep_cells_readable(Grid.of(drawn), "overview_heat", narrowest=narrowest)
        basic.chart(figure, key="overview_heat", alt=grid_texts.grid_alt(drawn, metric), on_select=_open)
    grid_panel.legend(drawn, metric)
    if left_out := grid_texts.left_out(drawn, grid, grid_texts.OTHER_MODELS):
        basic.note(left_out)
    tables.table_twin("The grid as a table", grid, _TABLE, csv_name="grid")


def _draw_other_grids(chosen: Slice, view: View) -> None:
    """Ways to what this grid cannot hold: runs of another accelerator, sequence, batch or study."""
    found = others(chosen, view.slices)
    if not found:
        return
    lines = []
    for other in found:
        size = texts.grid_size(other.runs_completed, other.runs_tried)
        lines.append((texts.grid_name(other), size, f"./?{urlencode(shell.slice_query(other.slice))}"))
    basic.section("Other grids", "other accelerator, sequence, batch or study; those with most results first")
    lists.items(lines[: first_screen.GRIDS_LISTED])
    if lines[first_screen.GRIDS_LISTED :]:
        title = numbers.count(len(lines) - first_screen.GRIDS_LISTED, "more grid")
        folds.fold(title, lambda: lists.items(lines[first_screen.GRIDS_LISTED :]), key="grids")


def _proposals(grid: pl.DataFrame, chosen: Slice, view: View) -> list[texts.Item]:
    """What to run next in the cells that promise most."""
    found = first_screen.proposals(view.store, chosen, grid)
    return [texts.Item(*advisor_texts.worth_running(row), url=url) for row, url in found]


def _draw_lists(grid: pl.DataFrame, chosen: Slice, view: View, *, whose: str) -> None:
    """What is worth a look or a run in the grid; the problems are those of the runs at the head of the page."""
    problems = queries.problems(whose).run(view.store.con).row(0, named=True)
    _draw_since(view)
    look, following, quiet = (st.container(gap=None) for _ in range(3))
    audit = queries.audit(chosen.origin).run(view.store.con)
    _draw_list(look, "Worth a look", texts.worth_a_look(audit), chosen.origin, view)
    _draw_list(quiet, "Quiet problems", texts.quiet_problems(problems), whose, view)
    # last, because it searches: the rest of the page does not wait for it
    planned = texts.planned(plans.plans().run(view.store.con))
    runs = [*planned, *texts.worth_running(grid), *_proposals(grid, chosen, view)]
    _draw_list(following, "Worth running next", runs, chosen.origin, view)


def _draw_since(view: View) -> None:
    """What came since the reader's last visit."""
    counts = live_queries.counts().run(view.store.con).row(0, named=True)
    before = last_visit({**counts, "at": numbers.moment(view.store.published_at)})
    more = live.since(before, counts["runs"], counts["failed"])
    if before is None or more is None or not (lines := live_texts.since(more, str(before.get("at", "")))):
        return
    with st.container(gap=None):
        basic.section("Since your last visit")
        lists.items([(text, value, "runs") for text, value in lines])


def _draw_list(region: DeltaGenerator, title: str, items: list[texts.Item], origin: str, view: View) -> None:
    if not items:
        return
    with region:
        basic.section(title)
        lists.items([(item.text, item.value, item.url or _url(item, origin, view.filters)) for item in items])


def _url(item: texts.Item, origin: str, filters: Filters) -> str:
    """Where a line of a list leads: to its cell, or to the rows behind it."""
    if item.cell is not None:
        return _cell_url(filters, item.cell)
    if item.key in ("lines_rejected", "values_doubted", "files_rejected", "runs_without_accelerator"):
        return "health"
    if item.key in _STATUS_BEHIND:
        return f"runs?{urlencode({'origins': origin, 'statuses': _STATUS_BEHIND[item.key]})}"
    behind = _ROWS_BEHIND.get(item.key or "")
    return urls.sql_url(behind(origin) if behind else queries.finding(origin, item.key or ""))


_page(shell.begin())
