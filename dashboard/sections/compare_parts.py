"""Parts of the page Compare: curves over each other, waterfalls subtracted, networks side by side, where to begin."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import compare as charts
from sweepscope.dashboard.format.implementation import IMPLEMENTATION, label
from sweepscope.dashboard.format.numbers import number
from sweepscope.dashboard.queries import compare as queries
from sweepscope.dashboard.queries import run as run_queries
from sweepscope.dashboard.queries import run_network as network_queries
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text import compare as texts
from sweepscope.dashboard.text import compare_network as network_texts
from sweepscope.dashboard.text import compare_sections as section_texts
from sweepscope.dashboard.view_models import compare_curves
from sweepscope.dashboard.view_models.compare import Subject
from sweepscope.dashboard.view_models.compare_losses import Difference
from sweepscope.dashboard.view_models.compare_speed import Race
from sweepscope.dashboard.view_models.curves import MEASURES
from sweepscope.dashboard.widgets import basic, choices, folds, lists, side_by_side, tables, urls


def draw_curves(view: View, columns: Sequence[Subject]) -> None:
    """Step time, throughput, loss or memory of all runs over their steps."""
    run_ids = [run_id for one in columns for run_id in one.run_ids]
    steps = queries.steps(run_ids).run(view.store.con)
    offered = compare_curves.measures(steps)
    if not offered:
        basic.section("Steps")
        basic.note(section_texts.curves_note(columns, set(), "steps") or "No step was logged.")
        return
    keys = [measure.key for measure in offered]
    top = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    title = top.container(width="content")
    with top:
        key = choices.segments("Measure", "measure", keys, shown=lambda name: MEASURES[name].label)
    measure = MEASURES[key]
    drawn = compare_curves.overlay(columns, steps, measure)
    with title:
        basic.section(measure.title, "over the steps of each")
    basic.chart(charts.draw_curves(drawn, view.theme), key="curves", alt=section_texts.curves_alt(drawn))
    basic.note(" ".join(filter(None, [section_texts.curves_note(columns, drawn.letters, measure.label.lower())])))


def draw_difference(view: View, race: Race, explained: Difference | None) -> None:
    """The waterfalls of the two fastest subtracted, or why there is nothing to subtract."""
    pair = [standing.subject for standing in race.standings[:2]]
    if len(pair) < 2:
        basic.section("Where the time differs")
        basic.note("It takes two runs with a speed to take the difference apart.")
        return
    first, second = (one.letter for one in pair)
    if explained is None:
        basic.section("Where the time differs")
        basic.note(_why_no_difference(view, pair))
        return
    title, qualifier = section_texts.difference_title(explained, first, second)
    basic.section(title, qualifier)
    figure = charts.draw_difference(explained, view.theme)
    basic.chart(figure, key="difference", alt=section_texts.difference_alt(explained, first, second))
    if sentence := texts.terms_sentence(explained, texts.short_names(pair)[first], most=3):
        basic.note(sentence)
    rows = section_texts.difference_table(explained, first, second)
    folds.fold("The two waterfalls as a table", lambda: tables.table(rows), key="difference")


def _why_no_difference(view: View, pair: Sequence[Subject]) -> str:
    if any(one.is_group for one in pair):
        return "Of groups the step is not taken apart: choose one run of each."
    run_ids = [one.run_ids[0] for one in pair]
    estimated = set(queries.estimates(run_ids).run(view.store.con)["run_id"])
    reasons = dict(queries.not_estimated(run_ids).run(view.store.con).iter_rows())
    return section_texts.no_difference(pair[0], pair[1], estimated, reasons)


def has_network(view: View, columns: Sequence[Subject]) -> bool:
    """Whether NCCL's output is known of any of them."""
    return any(found.height for found in _network_files(view, columns).values())


def _network_files(view: View, columns: Sequence[Subject]) -> dict[str, pl.DataFrame]:
    run_ids = [run_id for one in columns for run_id in one.run_ids]
    return {run_id: network_queries.files(run_id).run(view.store.con) for run_id in run_ids}


def draw_network(view: View, columns: Sequence[Subject]) -> None:
    """What NCCL's output says of each run, where any of them has some."""
    con, files = view.store.con, _network_files(view, columns)
    if all(found.is_empty() for found in files.values()):
        return
    findings = {run_id: network_queries.findings(run_id).run(con) for run_id, found in files.items() if found.height}
    basic.section("Network", "from NCCL's output")
    side_by_side.draw(
        [f"<b>{one.letter}</b>" for one in columns],
        {"": network_texts.fact_lines(columns, files), "Findings": network_texts.finding_lines(columns, findings)},
        label="What NCCL's output says of each run",
        colors=[charts.color_of(place, view.theme) for place in range(len(columns))],
    )
    if note := network_texts.without_output(columns, files):
        basic.note(note)


def draw_suggestions(view: View, run: Row | None) -> None:
    """Pairs to begin with: of a chosen run its cell's best and the same configuration elsewhere, else whole cells."""
    con = view.store.con
    found: list[tuple[str, str, str | None]] = []
    if run is not None:
        for row in run_queries.place_in_cell(run["run_id"]).run(con).iter_rows(named=True):
            if row["winner_run_id"] != run["run_id"]:
                address = urls.compare_url([row["winner_run_id"], run["run_id"]])
                found.append(("With the best of its cell", row["winner_layout"] or "layout unknown", address))
        for row in queries.elsewhere(run["run_id"]).run(con).iter_rows(named=True):
            name = label(row, [*IMPLEMENTATION[:2], "cluster"])
            speed = f"{number(row['tokens_per_s_per_gpu'])} tokens/s/GPU"
            address = urls.compare_url([run["run_id"], row["run_id"]])
            found.append((f"With the same configuration of {name} on {row['accelerator']}", speed, address))
        found.append(("Choose others from the list of runs", "", urls.runs_beside_url(run["run_id"])))
    else:
        for row in queries.suggestions().run(con).iter_rows(named=True):
            address = urls.compare_url([row["run_id"], row["runner_up_run_id"]])
            layouts = f"{row['layout'] or '?'} and {row['runner_up_layout'] or '?'}"
            found.append((texts.pair(row), layouts, address))
        found.append(("Choose from the list of runs", "", "runs"))
    basic.section("Where to begin")
    lists.items(found)
