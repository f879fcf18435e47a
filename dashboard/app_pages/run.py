"""One run: how it ended and the evidence, how fast it was, and the source of each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import memory_waterfall as memory_chart
from sweepscope.dashboard.charts import steps as steps_chart
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import column_label, names
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.queries import compare as compare_queries
from sweepscope.dashboard.queries import memory as memory_queries
from sweepscope.dashboard.queries import run as queries
from sweepscope.dashboard.sections import notes, run_network, run_ratios, run_timeline, run_traces
from sweepscope.dashboard.text import memory_run as memory_texts
from sweepscope.dashboard.text import run as texts
from sweepscope.dashboard.text import run_sections as section_texts
from sweepscope.dashboard.text import run_steps as step_texts
from sweepscope.dashboard.view_models import configuration, curves, memory
from sweepscope.dashboard.view_models.curves import MEASURES
from sweepscope.dashboard.widgets import basic, choices, folds, lists, tables, urls
from sweepscope.dashboard.widgets.basic import link, rich

_SETTINGS = ("name", "value", "setting_source", "is_used", "source_path", "line_no")
_ARGUMENTS = ("name", "value", "setting_source", "source_path", "line_no")
_STEPS = names("step steps_in_row step_time_s loss tokens_per_s_per_gpu mem_reserved_bytes grad_norm line_no")
_EVIDENCE_SHOWN = 6
_TRIES_SHOWN = 12
_ATTEMPTS_SHOWN = 20
_ARTEFACTS_SHOWN = 8
_ELSEWHERE_SHOWN = 19


def _page(view: View) -> None:
    run_id = st.query_params.get("run", "")
    con = view.store.con
    found = queries.run(run_id).run(con)
    if found.is_empty():
        basic.head("Run", f"**This store has no run {run_id}.**" if run_id else "**No run is chosen.**")
        st.html(f'<p class="ss-note">{link("All runs", "runs")}</p>')
        return
    run = found.row(0, named=True)
    evidence = queries.evidence(run_id).run(con)
    points = queries.steps(run_id).run(con)
    _draw_head(run, evidence, points)
    basic.figures(texts.figures(run))
    left, right = st.columns(2, gap="large")
    with left, st.container(gap="xsmall"):
        if run["origin"] == "published":
            _draw_publication(queries.published(run_id).run(con))
        else:
            _draw_curve(view, run, points)
            _draw_evidence(run, evidence)
    settings = queries.settings(run_id).run(con)
    with right, st.container(gap="xsmall"):
        _draw_memory(view, run)
        _draw_facts(run, settings, "Layout")
        _draw_relations(view, run)
        notes.draw_run(view, run_id)
        if run["origin"] != "published":
            _draw_cost(view, run)
    if run["origin"] != "published":
        run_timeline.draw(con, view.theme, run)
    if below := [
        group for group in configuration.GROUPS if group != "Layout" and configuration.facts(run, settings, group)
    ]:
        title = ", ".join([below[0], *map(numbers.in_sentence, below[1:])])
        folds.fold(title, lambda: _draw_groups(run, settings, below), key="facts")
    run_ratios.draw(con, run, has_arguments=view.store.has("arguments"))
    if run["origin"] != "published":
        run_network.draw(con, run_id)
        if view.store.has("trace_steps", "trace_collectives"):
            run_traces.draw(con, run)
    _draw_tables(view, run, settings, points)


def _draw_head(run: dict[str, Any], evidence: pl.DataFrame, points: pl.DataFrame) -> None:
    last_line = points["line_no"].max() if points.height else None
    answer = texts.answer(run, evidence.to_dicts(), int(last_line) if isinstance(last_line, int) else None)
    basic.head(texts.title(run), answer, texts.conditions(run), origins=(run["origin"],))


def _draw_curve(view: View, run: dict[str, Any], points: pl.DataFrame) -> None:
    offered = curves.offered(points) if points.height else []
    if not offered:
        basic.section("Steps")
        basic.note(section_texts.no_curve(points.height))
        return
    top = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    title = top.container(width="content")
    with top:
        keys = [measure.key for measure in offered]
        key = choices.segments("Measure", "measure", keys, shown=lambda name: MEASURES[name].label)
    measure = MEASURES[key or keys[0]]
    curve = curves.curve(points, measure, warmup_steps=run["warmup_steps_dropped"] or 0, median=run.get(measure.column))
    with title:
        basic.section(measure.title, section_texts.curve_qualifier(curve))
    chart = steps_chart.draw(curve, view.theme, step_texts.axis(run))
    basic.chart(chart, key="curve", alt=section_texts.curve_alt(curve))
    if note := step_texts.step_note(run):
        basic.note(note)


def _draw_evidence(run: dict[str, Any], evidence: pl.DataFrame) -> None:
    rows = section_texts.deciding_lines(evidence.to_dicts(), run["status"], _EVIDENCE_SHOWN)
    basic.section(STATUS[run["status"]].text, texts.evidence_line(run, [row for row, _ in rows]))
    if rows:
        addresses = [urls.log_url(row["source_path"], row["line_no"]) for row, _ in rows]
        basic.log_lines([(row["line_no"], row["text"], section_texts.alike(more)) for row, more in rows], addresses)
    found = int(evidence["found"][0]) if evidence.height else 0
    basic.note(section_texts.source_note(run, found=found))
    if found > len(rows):
        columns = ("line_no", "kind", "rank", "host", "text", "source_path")
        title = f"All {numbers.count(found, 'evidence line')}"
        folds.fold(title, lambda: tables.table(evidence, columns), key="evidence")


def _draw_publication(published: pl.DataFrame) -> None:
    basic.section("As published")
    if published.is_empty():
        basic.note("The published table that this row comes from is not in this store.")
        return
    row = published.row(0, named=True)
    lists.rows([(rich(name), value) for name, value in _publication_facts(row)])
    if row["notes"]:
        basic.note(f"**Notes.** {row['notes']}")


def _publication_facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    title = row["source_title"] or row["source_id"] or "source"
    source = basic.outside_link(title, row["source_url"]) if row["source_url"] else rich(title)
    line = f"{row['source_path']}, line {numbers.number(row['line_no'])}"
    stated = [(name, rich(value)) for name, value in section_texts.publication(row)]
    return [("Source", source), *stated, ("File", rich(line))]


def _draw_memory(view: View, run: dict[str, Any]) -> None:
    tracks = section_texts.memory_tracks(run)
    con, run_id = view.store.con, run["run_id"]
    fit = next(iter(memory_queries.fit(run_id).run(con).to_dicts()), None)
    bars = memory.bars(memory_queries.parts(run_id).run(con))
    if tracks or fit or bars:
        basic.section("Peak memory", section_texts.memory_qualifier(run) if tracks else "")
    if tracks:
        lists.tracks(tracks)
    if fit:
        st.html(f'<p class="ss-plain">{rich(memory_texts.verdict_text(fit, run["status"]))}</p>')
    if len(bars) > 1:
        alt = memory_texts.waterfall_alt(bars)
        folds.fold(
            "From the estimate to the card",
            lambda: basic.chart(memory_chart.draw_waterfall(bars, view.theme), key="waterfall", alt=alt),
            key="waterfall",
        )
    artefacts = memory_queries.of_run(run_id).run(con).to_dicts()
    if artefacts:
        rows = []
        for row in artefacts[:_ARTEFACTS_SHOWN]:
            name = link(memory_texts.snapshot_name(row), urls.snapshot_url(row["source_path"], row["device"]))
            rows.append((name, rich(memory_texts.snapshot_facts(row))))
        lists.rows(rows)


def _draw_groups(run: dict[str, Any], settings: pl.DataFrame, groups: Sequence[str]) -> None:
    for column, group in zip(st.columns(len(groups), gap="large"), groups, strict=True):
        with column, st.container(gap="xsmall"):
            _draw_facts(run, settings, group)


def _draw_facts(run: dict[str, Any], settings: pl.DataFrame, group: str) -> None:
    facts = configuration.facts(run, settings, group)
    if facts:
        basic.section(group)
        lists.facts([(fact.label, fact.value, section_texts.fact_note(fact)) for fact in facts])


def _draw_relations(view: View, run: dict[str, Any]) -> None:
    ranked = queries.place_in_cell(run["run_id"]).run(view.store.con)
    attempts = queries.attempts(run["run_id"]).run(view.store.con)
    audit = queries.audit(run["run_id"]).run(view.store.con)
    rows: list[tuple[str, str]] = []
    if ranked.height:
        rank = ranked.row(0, named=True)
        text, winner = rich(texts.rank_text(rank)), rank["winner_run_id"]
        is_other = winner is not None and rank["rank_in_cell"] != 1
        rows.append(("Rank", f"{text} {link('(run)', urls.run_url(winner))}" if is_other else text))
    if attempts.height > 1:
        links = []
        for row in attempts.head(_ATTEMPTS_SHOWN).to_dicts():
            symbol = "" if row["run_id"] == run["run_id"] else f" {STATUS[row['status']].symbol}"
            links.append(_run_link(row, f"{row['attempt']}{symbol}", run["run_id"]))
        rows.append(("Attempts", " · ".join(links)))
    elsewhere = compare_queries.elsewhere(run["run_id"]).run(view.store.con)
    rows.append(("Compare", " · ".join(_comparisons(run["run_id"], ranked, elsewhere["run_id"].to_list()))))
    if (nodes := run_timeline.hosts(view.store.con, run["run_id"])) is not None:
        rows.append(nodes)
    rows += [(rich(column_label(row["finding"])), rich(row["detail"])) for row in audit.iter_rows(named=True)]
    if rows:
        basic.section("In this store")
        lists.rows(rows)


def _comparisons(run_id: str, ranked: pl.DataFrame, elsewhere: list[str]) -> list[str]:
    """Links to this run beside others: the best of its cell (of the best, the next), itself elsewhere, any."""
    place = ranked.row(0, named=True) if ranked.height else {}
    links = []
    if place and place["rank_in_cell"] != 1:
        links.append(link("with this cell's best", urls.compare_url([place["winner_run_id"], run_id])))
    elif place and place["runner_up_run_id"]:
        links.append(link("with the runner-up", urls.compare_url([run_id, place["runner_up_run_id"]])))
    if elsewhere:
        links.append(link(texts.elsewhere(len(elsewhere)), urls.compare_url([run_id, *elsewhere[:_ELSEWHERE_SHOWN]])))
    return [*links, link("with other runs", urls.runs_beside_url(run_id))]


def _run_link(row: dict[str, Any], text: str, shown_id: str) -> str:
    """A link to the run of a row; bold text where it is the run on screen."""
    return f"<b>{text}</b>" if row["run_id"] == shown_id else link(text, urls.run_url(row["run_id"]))


def _draw_cost(view: View, run: dict[str, Any]) -> None:
    con, run_id = view.store.con, run["run_id"]
    found = queries.cost(run).run(con)
    if found.is_empty():
        return
    rows = [(rich(name), rich(value)) for name, value in section_texts.cost(found.row(0, named=True))]
    for spent in queries.money_and_energy(run_id).run(con).to_dicts():
        rows += [(rich(name), rich(value)) for name, value in section_texts.money_and_energy(spent)]
    tries = queries.same_configuration(run).run(con)
    if tries.height > 1:
        shown = tries.head(_TRIES_SHOWN).iter_rows(named=True)
        links = [_run_link(row, STATUS[row["status"]].text, run_id) for row in shown]
        rows.append(("Tries of this configuration", " · ".join(links)))
    alike = queries.failed_alike(run)
    others = alike.run(con).height
    if others:
        rows.append(("Failed alike", link(section_texts.alike_failures(others), urls.sql_url(alike))))
    basic.section("Cost and other tries")
    lists.rows(rows)


def _draw_tables(view: View, run: dict[str, Any], settings: pl.DataFrame, points: pl.DataFrame) -> None:
    run_id = run["run_id"]
    if settings.height:
        title = section_texts.settings_title(settings.height, configuration.conflicts(settings))
        folds.fold(title, lambda: tables.table(settings, _SETTINGS), key="settings")
    arguments = queries.arguments(run_id)
    launched = arguments.run(view.store.con) if view.store.has("arguments") else settings.clear()
    if launched.height:
        title = section_texts.arguments_title(launched.height)
        folds.fold(title, lambda: _draw_arguments(launched, run_id), key="arguments")
    if points.height:
        steps = int(points["steps_in_row"].sum())
        folds.fold(f"Steps · {numbers.number(steps)}", lambda: _draw_steps(view, run, points, steps), key="steps")
    with st.container(horizontal=True):
        evidence, settings_query = queries.evidence(run_id), queries.settings(run_id)
        money = queries.money_and_energy(run_id)
        stated = {"Settings": settings_query, "Arguments": arguments}
        basic.sql_popover({"Run": queries.run(run_id), "Evidence": evidence, **stated, "Cost": money})
        shell.share_popover()


def _draw_arguments(launched: pl.DataFrame, run_id: str) -> None:
    tables.table(launched, _ARGUMENTS)
    tables.csv_button(launched, f"arguments_{run_id}")


def _draw_steps(view: View, run: dict[str, Any], points: pl.DataFrame, steps: int) -> None:
    note = section_texts.step_table_note(steps, points.height)
    basic.note(" ".join(part for part in (note, step_texts.step_note(run)) if part))
    tables.table(points, _STEPS)
    tables.csv_later(queries.all_steps(run["run_id"]), view.store.con, f"steps_{run['run_id']}", rows=steps)


_page(shell.begin())
