"""Compare: runs side by side. Which is faster, is that more than noise, what explains it, and all that differs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import compare as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import column_label
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.queries import compare as queries
from sweepscope.dashboard.report import comparison
from sweepscope.dashboard.sections import compare_links, compare_parts, log_difference, sweep_pair
from sweepscope.dashboard.selection.comparison import parse_runs
from sweepscope.dashboard.text import compare as texts
from sweepscope.dashboard.text import compare_results
from sweepscope.dashboard.text import compare_sections as section_texts
from sweepscope.dashboard.view_models import compare
from sweepscope.dashboard.view_models.compare import Line, Subject
from sweepscope.dashboard.widgets import basic, choices, side_by_side, tables, urls

TITLE = "Compare"
_RAW_SHOWN = 40
# More columns leave no room for charts beside the table.
_MOST_BESIDE = 3


def _page(view: View) -> None:
    con = view.store.con
    asked = parse_runs(shell.url_query())
    found = queries.runs(asked.run_ids).run(con)
    missing = [run_id for run_id in asked.run_ids if run_id not in set(found["run_id"])]
    single = compare.subjects(asked.columns, found)
    if len(single) < 2:
        _draw_too_few(view, single, missing)
        return
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with controls:
        compare_links.draw_adding(view, found["run_id"].to_list())
        columns = _grouped(single, found)
        shell.share_popover(on_screen=lambda con: comparison.comparison(con, asked.run_ids, LIGHT))
        basic.sql_popover(
            {
                "Runs": queries.runs(asked.run_ids),
                "Settings": queries.settings(asked.run_ids),
                "Arguments": queries.arguments(asked.run_ids),
                "Steps": queries.steps(asked.run_ids),
                "Estimates": queries.estimates(asked.run_ids),
            }
        )
    lines = compare.configuration_lines(columns)
    configuration = {group: compare.folded(rows) for group, rows in lines.items()}
    differing = [line for part in configuration.values() for line in part.shown]
    race = comparison.race(con, columns)
    explained = comparison.explained(con, race) if view.store.has("estimates") else None
    with head:
        origins = tuple(dict.fromkeys(row["origin"] for row in found.iter_rows(named=True)))
        meta = section_texts.meta(columns, asked.left_out)
        basic.head(TITLE, texts.answer(race, columns, explained, differing), meta, origins=origins)
        if missing:
            basic.note(section_texts.unknown(missing))
    results = compare_results.lines(columns)
    decisive = compare_results.main(columns, results)
    groups = {group: part.shown for group, part in configuration.items()}
    if len(columns) <= _MOST_BESIDE:
        left, right = st.columns([0.52, 0.48], gap="large")
        with left, st.container(gap="xsmall"):
            _draw_lines(view, columns, {"Results": decisive, **groups})
            _draw_no_difference(groups)
        with right, st.container(gap="xsmall"):
            compare_parts.draw_difference(view, race, explained)
            compare_parts.draw_curves(view, columns)
    else:
        _draw_lines(view, columns, {"Results": decisive})
        left, right = st.columns(2, gap="large")
        with left, st.container(gap="xsmall"):
            compare_parts.draw_difference(view, race, explained)
        with right, st.container(gap="xsmall"):
            compare_parts.draw_curves(view, columns)
        basic.section("What differs in their configuration", section_texts.differing_qualifier(len(differing)))
        if differing:
            _draw_lines(view, columns, groups)
    _draw_more(columns, [line for line in results if line not in decisive])
    _draw_launch_and_network(view, columns, [line for part in configuration.values() for line in part.equal])
    log_difference.draw(view, columns)
    basic.how_to_read(texts.HOW_TO_READ)


def _draw_too_few(view: View, single: Sequence[Subject], missing: Sequence[str]) -> None:
    answer = texts.NOTHING_CHOSEN if not single else texts.one_chosen(single[0])
    basic.head(TITLE, answer)
    if missing:
        basic.note(section_texts.unknown(missing))
    compare_links.draw_adding(view, [run_id for one in single for run_id in one.run_ids])
    compare_parts.draw_suggestions(view, single[0].runs[0] if single else None)
    sweep_pair.draw(view)


def _grouped(single: list[Subject], found: pl.DataFrame) -> list[Subject]:
    """The columns as groups, where the reader asks for that and the runs allow it."""
    ways = compare.groupings(single)
    if not ways:
        return single
    way = choices.select(
        "Group by", "by", ["", *ways], shown=lambda name: column_label(name) if name else "each run alone", width=190
    )
    return compare.subjects(ways[way], found) if way else single


def _heads(columns: Sequence[Subject]) -> list[str]:
    """Letter, layout as a link to the run, and below them what it is."""
    heads = []
    for one in columns:
        layout = one.shared("layout") or ("several layouts" if one.is_group else "layout unknown")
        name = html.escape(layout) if one.is_group else basic.link(layout, urls.run_url(one.run_ids[0]))
        badges = "".join(basic.badge(origin) for origin in dict.fromkeys(row["origin"] for row in one.runs))
        heads.append(
            f"<b>{one.letter}</b> {name}<small>{basic.rich(texts.heading(one))}</small><small>{badges}</small>"
        )
    return heads


def _strokes(view: View, columns: Sequence[Subject]) -> list[str]:
    return [charts.color_of(place, view.theme) for place in range(len(columns))]


def _draw_lines(view: View, columns: Sequence[Subject], groups: Mapping[str, Sequence[Line]]) -> None:
    side_by_side.draw(
        _heads(columns),
        groups,
        label=f"{', '.join(filter(None, groups)) or 'Arguments'} of each run",
        colors=_strokes(view, columns),
    )


def _draw_no_difference(groups: Mapping[str, Sequence[Line]]) -> None:
    if not any(groups.values()):
        basic.note(f"Configuration: {section_texts.differing_qualifier(0)}.")


def _draw_more(columns: Sequence[Subject], more: Sequence[Line]) -> None:
    if more:
        with st.expander(f"More results · {numbers.count(len(more), 'line')}"):
            _draw_plain(columns, more)


def _draw_launch_and_network(view: View, columns: Sequence[Subject], equal: list[Line]) -> None:
    """What the runs were launched with, and what NCCL says of them: beside each other where both have room."""
    is_beside = len(columns) <= _MOST_BESIDE and compare_parts.has_network(view, columns)
    left, right = st.columns([0.52, 0.48], gap="large") if is_beside else (st.container(), st.container())
    with left, st.container(gap="xsmall"):
        _draw_folded(view, columns, equal)
    with right, st.container(gap="xsmall"):
        compare_parts.draw_network(view, columns)


def _draw_folded(view: View, columns: Sequence[Subject], equal: list[Line]) -> None:
    run_ids = [run_id for one in columns for run_id in one.run_ids]
    raw = compare.folded(compare.raw_lines(columns, _raw_settings(view, run_ids)), is_raw=True)
    if raw.shown:
        basic.section("Arguments that differ", "as each framework spells them")
        _draw_lines(view, columns, {"": raw.shown[:_RAW_SHOWN]})
        if len(raw.shown) > _RAW_SHOWN:
            with st.expander(f"{numbers.count(len(raw.shown) - _RAW_SHOWN, 'further argument')}"):
                _draw_plain(columns, raw.shown[_RAW_SHOWN:])
    folded = [*equal, *raw.equal]
    if folded or raw.alone:
        with st.expander(section_texts.folded_title(len(folded), len(raw.alone)).capitalize()):
            _draw_plain(columns, [*folded, *raw.alone])
            every = [*equal, *raw.shown, *raw.equal, *raw.alone]
            tables.csv_button(compare.table(columns, every, lambda one: f"{one.letter} {one.run_ids[0]}"), "comparison")


def _raw_settings(view: View, run_ids: list[str]) -> pl.DataFrame:
    """Settings, and what the runs were launched with, by `run_id` and `name`."""
    settings = queries.settings(run_ids).run(view.store.con)
    if not view.store.has("arguments"):  # an older version published the store
        return settings
    return pl.concat([settings, queries.arguments(run_ids).run(view.store.con)])


def _draw_plain(columns: Sequence[Subject], lines: Sequence[Line]) -> None:
    tables.table(compare.table(columns, lines, lambda one: one.letter))


_page(shell.begin())
