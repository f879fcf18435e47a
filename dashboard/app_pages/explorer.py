"""Explorer & advisor: what a layout would need and reach, answered while its knobs are turned."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.store import own_constants, own_frameworks
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.queries import explorer as queries
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.report import estimated
from sweepscope.dashboard.sections import (
    advisor,
    estimator_pick,
    explorer_controls,
    explorer_layout,
    page_head,
    recipe,
    switch_points,
)
from sweepscope.dashboard.sections.explorer_controls import number_choice
from sweepscope.dashboard.text import explorer as texts
from sweepscope.dashboard.text import options as option_texts
from sweepscope.dashboard.text import origins as origins_texts
from sweepscope.dashboard.text import ratios as ratio_texts
from sweepscope.dashboard.view_models import explorer
from sweepscope.dashboard.view_models.explorer import CUSTOM, Setup
from sweepscope.dashboard.view_models.explorer_layout import answer_for, reached
from sweepscope.dashboard.widgets import basic, choices, folds, lists, tables
from sweepscope.dashboard.widgets.charts_last import fragment
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import AUTO, PHYSICS, Found
from sweepscope.pipeline.estimate.search.whatif import Choice, resolve
from sweepscope.pipeline.reference.clusters import Cluster, Precision, find_cluster, known_cards
from sweepscope.pipeline.reference.model_shape import ModelShape

TITLE = "Explorer & advisor"
_MOST_NODES = 8192
_TABLE_HEIGHT = 196  # px: the first five rows


def _page(view: View) -> None:
    con = view.store.con
    origin = view.chosen.origin if view.chosen else None
    models = explorer.offered_models(estimator_pick.shapes(view.store, origin))
    setups = queries.setups(origin).run(con)
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with controls:
        setup = _setup(view, setups, models)
        if isinstance(setup, str):
            with head:
                basic.head(TITLE, f"**This shape cannot be estimated.** {setup}")
            return
        alike = _runs_alike(view, setup, origin)
        request = setup.request(own_constants())
        found = explorer.found_for(request, setup.by)
        runs = alike.run(con)
        left_out = resolve(request, explorer.start_of(request, setup.by), explorer_controls.wanted_knobs())[1]
        shown = next(iter(runs["origin"]), origin)
        cell = advisor.cell_query(setup, request, shown) if shown is not None else None
        basic.sql_popover({"Completed runs of this model": alike, **({"Runs of this question": cell} if cell else {})})
    with head:
        origins = ("estimated", *runs["origin"].head(1))
        basic.head(TITLE, texts.answer(setup, request, found, runs), texts.meta(setup, request, found), origins=origins)
        if left_out:
            basic.note(texts.left_out(left_out))
        page_head.say_no_own_grid(view)
        if origin == "measured" and not explorer.usable(setups.filter(origin="measured"), models).height:
            if shown == "measured":
                basic.note(texts.OWN_NOT_ESTIMATED)
            else:
                page_head.say_instead(con, shown, None, origins_texts.NOT_ESTIMATED)
    if found.launchable:
        _explore(view, setup, request, runs)
    part = choices.segments("What to show below", "part", list(texts.PARTS), _part(), shown=texts.PARTS.__getitem__)
    if part == "layouts":
        _draw_search(found, request)
        if found.fitting and cell is not None:
            rows = advisor.draw_next(view.store, request, cell, on_select=_take_next)
            st.session_state["explorer_next"] = [Choice.of(row) for row in rows.iter_rows(named=True)]
    elif part == "switches":
        switch_points.draw(view.theme, setup, request, runs)
    elif found.launchable:
        recipe.draw(view, setup.model, request, found, origin)
    basic.how_to_read(texts.HOW_TO_READ)


def _runs_alike(view: View, setup: Setup, origin: str | None) -> Query:
    """The completed runs of the model on this accelerator: published ones where the origin on screen has none."""
    has_estimates = view.store.has("estimates")
    asked = [
        queries.alike(of, setup.model, setup.shape, setup.accelerator, has_estimates=has_estimates)
        for of in (origin, "published")
    ]
    return next((query for query in asked if query.run(view.store.con).height), asked[0])


def _part() -> str:
    """The part that the page begins with: the flowchart where the address names a branch of it."""
    return "rules" if any(name.startswith("way_") for name in st.query_params) else "layouts"


def _setup(view: View, setups: pl.DataFrame, models: dict[str, ModelShape]) -> Setup | str:
    """The question in the selectors; a sentence when a shape of one's own is none."""
    nodes = st.query_params.get("nodes", "")
    asked = {
        "model": st.query_params.get("model"),
        "accelerator": st.query_params.get("card"),
        "num_nodes": int(nodes) if nodes.isdecimal() else None,
    }
    # the constants are of the latter: estimates of more nodes would else be by others
    start, usual = explorer.start_setups(setups, models, asked, view.chosen)
    offered = [*explorer.listed_models(models, st.query_params.get("model", start["model"])), CUSTOM]
    unlisted = option_texts.left_out(offered, models, noun="model", most="runs", parameter="model")
    model = choices.select("Model", "model", offered, start["model"], width=190, help=unlisted)
    cards = known_cards()
    card = find_cluster(start["accelerator"])
    accelerator = choices.select("Accelerator", "card", cards, card.accelerator if card else cards[0], width=190)
    count = number_choice(
        "Nodes",
        "nodes",
        explorer.NODES,
        start["num_nodes"],
        allowed=lambda value: value <= _MOST_NODES,
        format_func=str,
        width=90,
    )
    sequence = number_choice(
        "Sequence",
        "seq",
        explorer.SEQUENCES,
        start["seq_len"],
        allowed=lambda value: value <= 2**24,
        format_func=numbers.number,
        width=110,
    )
    cluster = find_cluster(accelerator)
    gpus = count * (cluster.gpus_per_node if cluster else 8)
    default = start["gbs_tokens"] if start["gbs_tokens"] % sequence == 0 else sequence * gpus
    batch = number_choice(
        "Batch, tokens",
        "batch",
        explorer.batches_for(sequence, gpus, default),
        default,
        allowed=lambda value: value % sequence == 0 and value <= 2**32,
        format_func=numbers.token_count,
        width=120,
    )
    with st.popover("Set-up", icon=":material/tune:"):
        shape: ModelShape | str = models[model] if model != CUSTOM else explorer_controls.custom_shape()
        ran = setups.filter(accelerator=accelerator)["framework"].drop_nulls().unique().sort().to_list()
        framework = _framework(cluster.generation if cluster else "", ran, usual["framework"])
        precision = _precision(cluster)
        by = choices.select("The fastest by", "rank", [AUTO, PHYSICS], shown=texts.RANKED_BY.__getitem__)
    if isinstance(shape, str):
        return shape
    name = "a model of this shape" if model == CUSTOM else model
    origin = view.chosen.origin if view.chosen else None
    software = estimator_pick.software_of(view.store, origin, accelerator, framework)
    return Setup(name, shape, accelerator, count, sequence, batch, framework, precision, by=by, software=software)


def _precision(cluster: Cluster | None) -> Precision:
    """That of matrix products, of those that the card has."""
    offered: tuple[Precision, ...] = cluster.precisions if cluster else ("bf16",)
    chosen = choices.select("Matrix products in", "precision", offered, shown=texts.PRECISIONS.__getitem__)
    return next(precision for precision in offered if precision == chosen)


def _framework(generation: str, ran: Sequence[str], default: str | None) -> str | None:
    """Whose constants to use: those fitted for a framework on this generation of cards, else those of the card.

    Frameworks that `ran` on the card are offered without constants of their own, too: other pages estimate their
    cells for them, and what they fuse and overlap counts.
    """
    fitted = own_frameworks(generation)
    options = [explorer_controls.NO_FRAMEWORK, *dict.fromkeys([*fitted, *ran])]
    name = choices.select(
        "Constants for",
        "constants",
        options,
        default if default in options else options[0],
        shown=lambda name: _constants_for(name, fitted),
    )
    return None if name == options[0] else name


def _constants_for(name: str, fitted: Sequence[str]) -> str:
    if name == explorer_controls.NO_FRAMEWORK:
        return "no framework: the card's"
    return name if name in fitted else f"{name}: the card's, with what it fuses"


def _link(setup: Setup, layout: Choice) -> dict[str, str]:
    """The whole question and layout, because defaults move with what is measured next."""
    question = {
        "model": setup.model,
        "card": setup.accelerator,
        "nodes": str(setup.nodes),
        "seq": str(setup.seq_len),
        "rank": setup.by,
        "batch": str(setup.gbs_tokens),
        "constants": setup.framework or explorer_controls.NO_FRAMEWORK,
    }
    return {**question, **{name: str(getattr(layout, name)) for name in explorer_controls.KNOBS}}


@fragment
def _explore(view: View, setup: Setup, request: Request, runs: pl.DataFrame) -> None:
    """All that depends on the layout: turning a knob reruns this and nothing else."""
    found, best = explorer.found_for(request, setup.by), explorer.start_of(request, setup.by)
    layout, _ = resolve(request, best, explorer_controls.wanted_knobs())
    estimate = answer_for(request, layout)
    with st.container(key="hero"):
        left, right = st.columns([0.22, 0.78], gap="large")
    with left, st.container(gap="xsmall", key="knobs"):
        basic.section("Layout", f"DP{estimate.dp} and GAS{estimate.gas} follow")
        explorer_controls.draw_knobs(request, layout, best)
        with st.container(horizontal=True, gap="small"):
            shell.share_popover(
                selection=_link(setup, layout),
                on_screen=lambda _: estimated.estimated(setup, request, found, runs, estimate, theme=LIGHT),
            )
            if layout != best:
                back = "To the fastest" if found.fitting else "To the leanest"
                st.button(back, key="take_best", on_click=explorer_controls.put_choice, args=(best, best))
    with right, st.container(gap="small"):
        fastest = found.speeds[-1] if found.fitting else 0.0
        explorer_layout.draw_verdict(estimate, found, reached(runs, estimate, setup, request.num_gpus, fastest))
        explorer_layout.draw_breakdowns(estimate)
        folds.fold(ratio_texts.TITLE, lambda: explorer_layout.draw_ratios(estimate), key="ratios")
    left, right = st.columns([0.47, 0.53], gap="large")
    with left:
        explorer_layout.draw_front(view.theme, request, found, estimate, on_select=_take_front)
    with right, st.container(gap="xsmall"):
        origin = view.chosen.origin if view.chosen else "measured"
        explorer_layout.draw_nearest(runs, estimate, setup, request, next(iter(runs["origin"]), origin))


def _take_front() -> None:
    points = st.session_state.front["selection"]["points"]
    if points and points[0].get("customdata") is not None:
        _take(st.session_state["explorer_front"][points[0]["customdata"][0]])


def _take_row() -> None:
    rows = st.session_state.top_layouts["selection"]["rows"]
    if rows:
        _take(st.session_state["explorer_top"][rows[0]])


def _take_next() -> None:
    rows = st.session_state.next_runs["selection"]["rows"]
    if rows:
        _take(st.session_state["explorer_next"][rows[0]])


def _take(choice: Choice) -> None:
    explorer_controls.put_choice(choice, st.session_state["explorer_top"][0])


def _draw_search(found: Found, request: Request) -> None:
    if found.fitting:
        named = estimated.fastest(request, found)
        st.session_state["explorer_top"] = [Choice.of(row) for row in named.iter_rows(named=True)]
        basic.section("The fastest layouts that fit", texts.ranked(found))
        shown = [name for name in estimated.FASTEST if named[name].count()]
        tables.picking_table(named, shown, key="top_layouts", on_select=_take_row, height=_TABLE_HEIGHT)
        tables.csv_button(named, "layouts")
    reasons = [(text, value, None) for text, value in texts.pruned(found)]
    folds.fold("Layouts left out, and why", lambda: lists.items(reasons), key="left_out")


_page(shell.begin())
