"""Plans: which runs are planned, which of them ran, and how near the predictions were."""

from __future__ import annotations

from typing import Any

import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.numbers import unbroken
from sweepscope.dashboard.queries import explorer as explorer_queries
from sweepscope.dashboard.queries import plans as queries
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.sections import page_head
from sweepscope.dashboard.text import plans as texts
from sweepscope.dashboard.widgets import basic, lists, tables, urls
from sweepscope.dashboard.widgets.basic import link, rich
from sweepscope.pipeline.reference.clusters import known_cards
from sweepscope.pipeline.reference.models import find_model

_RUNS = names(
    "planned_run_id plan_outcome status run_id model num_nodes num_gpus layout believed_step_time_s believed_lo_s "
    "believed_hi_s step_time_s step_time_over_predicted oom_probability planned_gpu_hours gpu_hours walltime_s "
    "tokens_per_s_per_gpu mem_peak_reserved_bytes layout_differs mends plan_change why"
)
_PLANS = names(
    "plan_id purpose created_at model runs_planned runs_completed runs_running runs_failed runs_mended runs_missing "
    "planned_gpu_hours gpu_hours"
)


def _page(view: View) -> None:
    query = queries.plans()
    plans = query.run(view.store.con)
    if plans.is_empty():
        page_head.nothing(texts.TITLE, texts.NONE, [texts.HOW_TO_PLAN])
        st.code("\n".join(texts.commands(_own_question(view))), language=None, wrap_lines=True)
        return
    wanted = st.query_params.get("plan", "")
    rows = plans.to_dicts()
    plan = next((row for row in rows if row["plan_id"] == wanted), rows[0] if len(rows) == 1 else None)
    if plan is not None:
        _draw_plan(view, plan, has_others=len(rows) > 1)
        return
    unknown = f"This store has no plan {wanted}. " if wanted else ""
    basic.head(texts.TITLE, unknown + texts.list_answer(rows))
    with st.container(horizontal=True):
        shell.share_popover()
        basic.sql_popover({"Plans": query})
    picked = tables.selectable_table(plans, _PLANS, key="plans")
    basic.how_to_read(texts.HOW_TO_READ)
    if picked is not None:
        follow(urls.plan_url(rows[picked]["plan_id"]))


def _own_question(view: View) -> Row | None:
    """The question of most own runs that `plan` takes by the names of model and card; None: there is none."""
    asked = explorer_queries.setups("measured").run(view.store.con).filter(origin="measured")
    named = (row for row in asked.iter_rows(named=True) if row["accelerator"] in known_cards())
    return next((row for row in named if find_model(row["model"]) is not None), None)


def _draw_plan(view: View, plan: dict[str, Any], *, has_others: bool) -> None:
    query = queries.runs(plan["plan_id"])
    frame = query.run(view.store.con)
    rows = frame.to_dicts()
    links = [("all plans", "plans")] if has_others else []
    basic.head(texts.TITLE, texts.answer(plan, rows), texts.meta(plan), links=links)
    with st.container(horizontal=True):
        shell.share_popover()
        basic.sql_popover({"Planned runs": query})
    basic.section("Planned runs", "the most informative first")
    heads = ("", "Run", "Nodes", "Outcome", "Step time", "OOM", "Why")
    cells = [(rich(str(row["position"])), _name(row), *map(rich, _facts(row))) for row in rows]
    lists.grid(heads, cells, label="Planned runs")
    tables.table_twin("As a table", frame, _RUNS, csv_name=plan["plan_id"], is_counted=True)
    basic.how_to_read(texts.HOW_TO_READ)


def _name(row: dict[str, Any]) -> str:
    """The layout, which leads to the run that fills it."""
    name = f"{row['model']}, {unbroken(row['layout'] or 'layout unknown')}"
    return link(name, urls.run_url(row["run_id"])) if row["run_id"] else rich(name)


def _facts(row: dict[str, Any]) -> tuple[str, ...]:
    return str(row["num_nodes"]), texts.outcome(row), texts.step(row), texts.chance(row), texts.reason(row)


_page(shell.begin())
