"""Two sweeps on Compare: the layouts that both completed, how many those are, and which sweep is faster on them."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import sweeps as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import sweeps as queries
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text import sweeps as texts
from sweepscope.dashboard.widgets import basic, choices, lists, tables, urls
from sweepscope.dashboard.widgets.basic import link, rich

_NONE = ""
_ENDS_SHOWN = 5
_TABLE = names(
    "model num_nodes num_gpus layout tokens_per_s_per_gpu other_tokens_per_s_per_gpu ratio mfu other_mfu repeats "
    "other_repeats"
)


def draw(view: View) -> None:
    """Two selectors and, once both are chosen, the comparison; nothing of a store with fewer than two sweeps."""
    found = queries.sweeps().run(view.store.con).to_dicts()
    if len(found) < 2:
        return
    by_name = {f"{row['origin']}/{row['sweep']}": row for row in found}
    basic.section("Or two sweeps", "on the layouts that both have completed")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        first, second = (
            choices.select(label, key, [_NONE, *by_name], shown=lambda name: _shown(by_name, name), width=340)
            for label, key in (("First sweep", "sweep_a"), ("Second sweep", "sweep_b"))
        )
    if first == second or _NONE in (first, second):
        return
    _draw_pair(view, by_name[first], by_name[second])


def _shown(by_name: Mapping[str, Row], name: str) -> str:
    return texts.option(by_name[name]) if name else "choose"


def _draw_pair(view: View, first: Row, second: Row) -> None:
    query = queries.pairs(*((one["origin"], one["sweep"]) for one in (first, second)))
    rows = query.run(view.store.con)
    both = rows.drop_nulls("ratio")
    labels = (str(first["sweep"]), str(second["sweep"]))
    st.html(f'<p class="ss-plain">{rich(texts.answer(rows, *labels))}</p>')
    if both.height:
        left, right = st.columns([0.6, 0.4], gap="large")
        with left:
            hovers = [texts.hover(row, *labels) for row in both.iter_rows(named=True)]
            figure = charts.draw_pairs(both, hovers, labels, view.theme)
            basic.chart(figure, key="sweep_pair", alt=texts.alt(both.height))
        with right, st.container(gap="xsmall"):
            ends = both.to_dicts()
            _draw_ends("Where the second gains most", [row for row in ends[::-1] if row["ratio"] > 1][:_ENDS_SHOWN])
            _draw_ends("Where it loses most", [row for row in ends if row["ratio"] < 1][:_ENDS_SHOWN])
    tables.table_twin("All layouts of both sweeps", rows, _TABLE, csv_name="sweep_pair", is_counted=True)
    basic.sql_popover({"Layouts of both": query})
    basic.notes(texts.HOW_TO_READ)


def _draw_ends(title: str, rows: list[dict[str, object]]) -> None:
    if not rows:
        return
    basic.section(title)
    lines = []
    for row in rows:
        address = urls.compare_url([str(row["run_id"]), str(row["other_run_id"])])
        ratio = float(str(row["ratio"]))
        lines.append((link(f"{row['model']} · {row['layout']}", address), rich(numbers.percent(ratio - 1))))
    lists.rows(lines)
