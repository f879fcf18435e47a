"""One file on memory: its levels, what was alive when and where it was made, and what differs from another."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import snapshot as charts
from sweepscope.dashboard.queries import snapshot as queries
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.text import memory_run as memory_texts
from sweepscope.dashboard.text import snapshot as texts
from sweepscope.dashboard.view_models import snapshot
from sweepscope.dashboard.widgets import basic, choices, tables, urls

_NOTHING = "-"
_ALIVE = ("category", "mib", "blocks", "frame", "rule", "mem_origin", "label", "allocations", "stack")
_DIFFERENCES = ("category", "difference_mib", "mib", "against_mib", "blocks", "against_blocks", "frame", "stack")
_DIFFERENCES_SHOWN = 400

Artefact = tuple[str, int | None]


def _page(view: View) -> None:
    found = queries.artefacts().run(view.store.con)
    names = {_key((row["source_path"], row["device"])): row for row in found.iter_rows(named=True)}
    chosen = _chosen(names)
    if chosen is None:
        basic.head("Snapshot", texts.none_chosen(st.query_params.get("file")))
        st.html(f'<p class="ss-note">{basic.link("All memory files", "memory")}</p>')
        return
    row = queries.summary(*chosen).run(view.store.con).row(0, named=True)
    levels = queries.timeline(*chosen).run(view.store.con)
    changes = queries.categories(*chosen).run(view.store.con)
    points = sorted(set(changes["point"]))
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with controls:
        against = _draw_controls(chosen, names)
    left, right = st.columns(2, gap="large")
    with left:
        span = _span(levels)
    with right:
        point = _instant(points, row["peak_after_events"], span)
    alive = _alive(view, chosen, point)
    with head:
        peak = row["peak_after_events"]
        at_peak = alive if point == peak else _alive(view, chosen, peak)
        answer = texts.answer(row, snapshot.by_category(at_peak))
        links = [("its run", urls.run_url(row["run_id"]))] if row["run_id"] else []
        links.append(("all memory files", "memory"))
        basic.head(texts.title(row), answer, texts.meta(row), origins=(row["origin"] or "measured",), links=links)
    basic.figures(texts.figures(row))
    _draw_levels(view, levels, point, span)
    _draw_stack(view, changes, point, span, has_alive=not alive.is_empty())
    _draw_alive(view, alive, point, peak)
    _draw_differences(view, chosen, against)
    basic.how_to_read(texts.HOW_TO_READ)


def _key(artefact: Artefact) -> str:
    path, device = artefact
    return path if device is None else f"{path}\n{device}"


def _chosen(names: dict[str, dict[str, Any]]) -> Artefact | None:
    """The artefact that the address names; without a device the first of the file."""
    path, device = st.query_params.get("file"), st.query_params.get("device")
    found = [row for row in names.values() if row["source_path"] == path]
    exact = [row for row in found if device is not None and str(row["device"]) == device]
    picked = next(iter(exact or found), None)
    return None if picked is None else (picked["source_path"], picked["device"])


def _draw_controls(chosen: Artefact, names: dict[str, dict[str, Any]]) -> Artefact | None:
    """Another artefact to show, and one to compare with."""
    shown = {key: memory_texts.snapshot_name(row) for key, row in names.items()}
    keys = list(names)

    def write() -> None:
        row = names[st.session_state["artefact"]]
        url_state.put("file", [row["source_path"]])
        url_state.put("device", [] if row["device"] is None else [str(row["device"])])
        for name in ("at", "against"):
            url_state.put(name, [])

    st.session_state["artefact"] = _key(chosen)
    st.selectbox("File", keys, key="artefact", on_change=write, width=420, format_func=lambda key: shown[key])
    others = [_NOTHING, *(key for key in keys if key != _key(chosen))]
    wanted = choices.select(
        "Compare its peak with", "against", others, _NOTHING, shown=lambda key: shown.get(key, "nothing"), width=420
    )
    shell.share_popover()
    queries_shown = {"Levels": queries.timeline(*chosen), "Categories": queries.categories(*chosen)}
    basic.sql_popover({"Summary": queries.summary(*chosen), **queries_shown, "At the peak": queries.at_peak(*chosen)})
    if wanted in (_NOTHING, None):
        return None
    return names[wanted]["source_path"], names[wanted]["device"]


def _span(levels: pl.DataFrame) -> tuple[int, int]:
    """First and last event shown: the slider is the keyboard's way to zoom."""
    last = int(levels["point"][-1]) if levels.height else 0
    if last < 2:
        return 0, max(last, 1)
    begin, end = st.slider("Events shown", 0, last, (0, last), key=f"span_{last}", format="localized")
    return begin, max(end, begin + 1)


def _instant(points: list[int], peak: int | None, span: tuple[int, int]) -> int | None:
    """The instant whose live blocks are listed; the peak at first. None where only the peak is known."""
    if len(points) < 2:
        return peak
    default = snapshot.nearest(points, peak if peak is not None else points[-1])
    bound = url_state.one("at", [str(point) for point in points], str(default))
    inside = [str(point) for point in points if span[0] <= point <= span[1]]
    if st.session_state[bound.key] not in inside:
        inside = sorted({*inside, st.session_state[bound.key]}, key=int)
    if len(inside) < 2:
        return int(inside[0])
    wanted = st.select_slider(
        "What was alive after so many events",
        inside,
        key=bound.key,
        on_change=bound.on_change,
        format_func=lambda point: f"{int(point):,}" + (" · peak" if int(point) == peak else ""),
    )
    return int(wanted)


def _alive(view: View, chosen: Artefact, point: int | None) -> pl.DataFrame:
    """What was alive at an instant; at the peak, where nothing else is known."""
    con = view.store.con
    rows = pl.DataFrame() if point is None else queries.alive(*chosen, point).run(con)
    return rows if rows.height else queries.at_peak(*chosen).run(con)


def _draw_levels(view: View, levels: pl.DataFrame, point: int | None, span: tuple[int, int]) -> None:
    if levels.height < 2:
        basic.section("Levels")
        basic.note(texts.NO_EVENTS)
        return
    basic.section("Levels", "requested bytes; drag to zoom, double click for all")
    chart = charts.draw_timeline(levels, point, span, view.theme)
    basic.chart(chart, key="levels", alt="Reserved, active and allocated memory over the record.", is_zoomable=True)


def _draw_stack(
    view: View, changes: pl.DataFrame, point: int | None, span: tuple[int, int], *, has_alive: bool
) -> None:
    points, levels = snapshot.category_levels(changes)
    if len(points) < 2:
        basic.note(texts.NO_SITES if has_alive else texts.NOTHING_ALIVE)
        return
    basic.section("What was alive", "by use")
    basic.legend([(snapshot.CATEGORIES[name], charts.colors_of(view.theme)[name]) for name in levels])
    chart = charts.draw_categories(points, levels, point, span, view.theme)
    basic.chart(chart, key="stack", alt=texts.stack_alt(levels), is_zoomable=True)


def _draw_alive(view: View, alive: pl.DataFrame, point: int | None, peak: int | None) -> None:
    if alive.is_empty():
        return
    basic.section("Alive", texts.alive_title(point, peak, alive))
    left, right = st.columns([0.45, 0.55], gap="large")
    with left, st.container(gap="xsmall"):
        alt = "What was alive by category and stack, outer frames above inner ones."
        basic.chart(charts.draw_flame(snapshot.flame(alive), view.theme), key="flame", alt=alt)
        basic.note("Outer frames above inner ones; a click opens a branch, a click on the top closes it.")
    with right, st.container(gap="xsmall"):
        shown = _readable(alive)
        columns = [name for name in _ALIVE if name in shown.columns and shown[name].count()]
        tables.table(shown, columns, wide=("frame", "rule", "stack"))
        tables.csv_button(alive, "memory_alive")


def _readable(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of a table with sizes in MiB and categories by their names."""
    named = pl.col("category").map_elements(snapshot.category_name, pl.String)
    return snapshot.in_mib(rows).with_columns(category=named)


def _draw_differences(view: View, chosen: Artefact, against: Artefact | None) -> None:
    if against is None:
        return
    rows = queries.differences(*chosen, *against).run(view.store.con)
    basic.section("Difference at the peak", f"this less {against[0].rsplit('/', 1)[-1]}")
    basic.note(texts.difference_note(rows))
    if rows.height:
        tables.table(_readable(rows.head(_DIFFERENCES_SHOWN)), _DIFFERENCES, wide=("frame", "stack"))
        tables.csv_button(rows, "memory_differences")


_page(shell.begin())
